"""Tables, tests and distributions judged on real records: sets, questions, answers with and without privacy, and the rule."""
