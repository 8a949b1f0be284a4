"""One call a question: plan, release and infer at once."""
