"""One call a question: plan, release and infer by family."""
