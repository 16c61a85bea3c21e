# For conftest: vdcsync apply --yes --check-command 'conftest test --policy policy -'
package main

import rego.v1

# Deletions and replacements of servers go through the team that owns them.
deny contains message if {
	some operation in input.operations
	operation.kind == "server"
	operation.verb == "delete"
	message := sprintf("%s must not be deleted by this pipeline", [operation.key])
}

# No port 22 for the whole internet.
deny contains message if {
	some operation in input.operations
	some change in operation.changes
	change.path == "rules"
	some rule in change.to
	rule.action == "accept"
	rule.destination_port == "22"
	not rule.source
	message := sprintf("%s opens port 22 to every address", [operation.key])
}

# A limit that the authors of the file cannot raise.
deny contains message if {
	to_number(input.cost.known_monthly_delta) > 500
	message := sprintf("the plan adds %s a month", [input.cost.known_monthly_delta])
}
