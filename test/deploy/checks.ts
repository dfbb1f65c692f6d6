/** The checks of deploy/ by the code of Prometheus and Docker Compose. */
export const CHECKS = '.ci/deploy-checks/deploy-checks'

/** Why a test is skipped. */
export const WHY = 'the checks are not built: .ci/build-deploy-checks'
