"""Tables of surveys with strata and primary sampling units."""
