"""The reproduction site: every table, figure and numeric claim of the five papers, theirs beside ours, with verdicts.

`catalogue` says what the papers print; `plan` how much of it is run; `tally` what came out; `site`, `pages` and `pictures` write it down.
"""
