"""Part III: ConvergeFlow, a flow that lands on tokens, checked against exact answers."""
