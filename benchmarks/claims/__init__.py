"""The paper claim by claim: what it says in our words, what was measured here, and whether that is the same."""
