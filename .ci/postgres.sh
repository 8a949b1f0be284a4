# A PostgreSQL server of one's own, for the time of a run: start_server, of the system's packages, names it in CONFIDE_POSTGRES.

binaries() {
  local found
  found=$(command -v initdb || true)
  if [ -n "$found" ]; then dirname "$(readlink -f "$found")"; return; fi
  ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -n 1
}

# PostgreSQL refuses to run as root.
unprivileged() {
  if [ "$(id -u)" -eq 0 ]; then
    if id postgres >/dev/null 2>&1; then su postgres -s /bin/sh -c "$1"; else su nobody -s /bin/sh -c "$1"; fi
  else
    sh -c "$1"
  fi
}

start_server() {
  local bin
  bin=$(binaries)
  [ -n "$bin" ] && [ -x "$bin/initdb" ] && [ -x "$bin/pg_ctl" ] || return 1
  folder=$(mktemp -d /tmp/pg.XXXXXX) && chmod 777 "$folder" || return 1
  # a socket in the folder and no port: nothing to collide with, and nobody else on the network
  unprivileged "cd '$folder' && '$bin/initdb' -D data -U confide --auth=trust --encoding=UTF8 --no-locale &&
    '$bin/pg_ctl' -D data -w -t 60 -l log -o \"-c listen_addresses='' -c unix_socket_directories='$folder'\" start" \
    >/dev/null 2>&1 </dev/null || return 1
  stop="'$bin/pg_ctl' -D '$folder/data' -m immediate stop"
  CONFIDE_POSTGRES="postgresql://confide@/postgres?host=$folder"
  export CONFIDE_POSTGRES
}

finish() {
  if [ -n "${stop:-}" ]; then unprivileged "$stop" >/dev/null 2>&1 || true; fi
  if [ -n "${folder:-}" ]; then rm -rf "$folder"; fi
}
trap finish EXIT
