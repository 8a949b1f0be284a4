"""Tests that release separate rounds; other tests are answered by tables."""
