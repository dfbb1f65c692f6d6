import { existsSync } from 'node:fs'
import { missing } from '../support/programs/run.js'

/** The checks of deploy/ by the code of Prometheus and Docker Compose. */
export const CHECKS = '.ci/deploy-checks/deploy-checks'

/** False when they are built; otherwise why a test is skipped. Throws with REQUIRE_CLIENTS=1. */
export function withoutChecks(): false | string {
  return !existsSync(CHECKS) && missing('the checks are not built: .ci/build-go-checks needs Go 1.23 or newer')
}
