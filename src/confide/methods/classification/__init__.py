"""Classes: means by class and the classifiers that read them."""
