"""What noise costs and how much it spreads; what a request allows; whether spends pay for what a plan states."""
