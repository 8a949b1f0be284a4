# What R's survey package says of three designs on records that `records()` in test_against_r.py makes too: one line "name,estimate,se".
# Rscript designs.R
suppressPackageStartupMessages(library(survey))
options(survey.lonely.psu = "fail")

records <- function() {
  i <- 0:19999
  psu <- i %/% 20
  h <- psu %% 5
  data.frame(
    psu = psu, h = h,
    y = (i * 7919 + psu * 104729) %% 1009 + 300 * ((psu * 7) %% 11) + 200 * h,
    x = 500 + (i * 6007 + psu * 331) %% 2003,
    w = 1 + ((i * 7907 + psu * 17) %% 9973) / 1024 + h / 8,
    sex = ifelse((i * 13 + psu) %% 7 < 3, "f", "m"),
    age = (i * 17 + psu * 3) %% 3
  )
}
d <- records()
d$z <- 2 * d$x + 1000 * (d$sex == "m") + 500 * d$age + d$y %/% 4
d$v <- as.integer(d$y + 400 * (d$sex == "m") + 300 * d$age > d$x + 1500)
d$sex <- factor(d$sex)
designs <- list(
  persons = svydesign(ids = ~1, weights = ~w, data = d),
  clusters = svydesign(ids = ~psu, weights = ~w, data = d),
  strata = svydesign(ids = ~psu, strata = ~h, weights = ~w, data = d)
)
say <- function(name, value, se) cat(sprintf("%s,%.15g,%.15g\n", name, value, se))
for (name in names(designs)) {
  s <- designs[[name]]
  put <- function(what, value, se) say(paste(name, what, sep = ":"), value, se)
  m <- svymean(~y, s); put("mean", coef(m), SE(m))
  b <- svyby(~y, ~sex, s, svymean, covmat = TRUE)
  for (k in c("f", "m")) put(paste0("mean ", k), coef(b)[[k]], SE(b)[k == c("f", "m")])
  c1 <- svycontrast(b, c(f = 1, m = -1)); put("difference", coef(c1), SE(c1))
  t <- svytotal(~y, s); put("total", coef(t), SE(t))
  t <- svytotal(~sex, s); put("number f", coef(t)[["sexf"]], SE(t)[["sexf"]])
  p <- svymean(~sex, s); put("share f", coef(p)[["sexf"]], SE(p)[["sexf"]])
  r <- svyratio(~y, ~x, s); put("ratio", coef(r), SE(r))
  line <- summary(svyglm(z ~ x + sex + age, s))$coefficients
  for (k in rownames(line)) put(paste("line", k), line[k, 1], line[k, 2])
  line <- summary(svyglm(y ~ x + sex + age, s))$coefficients
  for (k in rownames(line)) put(paste("wide", k), line[k, 1], line[k, 2])
  exact <- glm.control(epsilon = 1e-14, maxit = 50)
  for (link in c("logit", "probit")) {
    line <- summary(svyglm(v ~ x + sex + age, s, family = quasibinomial(link), control = exact))$coefficients
    for (k in rownames(line)) put(paste(link, k), line[k, 1], line[k, 2])
  }
  ps <- postStratify(s, ~sex, data.frame(sex = c("f", "m"), Freq = c(51000, 49000)))
  m <- svymean(~y, ps); put("poststratified", coef(m), SE(m))
  totals <- c("(Intercept)" = 100000, sexm = 49000, "age1" = 34000, "age2" = 35000)
  two <- calibrate(update(s, age = factor(age)), ~ sex + age, totals)
  m <- svymean(~y, two); put("two margins", coef(m), SE(m))
  if (name != "persons") {
    q <- svymean(~y, subset(s, age == 1)); put("subgroup", coef(q), SE(q))
  }
}
