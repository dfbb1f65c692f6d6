// The suites that `npm test -- --suite NAME` runs, by name. A suite is one run or several, one after the other; a run has
// files (a folder stands for all test files below it), the environment of its tests, and the longest time of one file in
// seconds.

/** @typedef {{ files: readonly string[], env?: Readonly<Record<string, string>>, timeout?: number }} Run */

const HOURS = 3600

/** The services that have both engines, and what runs above them, on PostgreSQL. */
const postgres = [
  'test/services/platform/users.test.ts',
  'test/services/platform/miners.test.ts',
  'test/services/platform/tasks/tasks.test.ts',
  'test/services/platform/tasks/movement.test.ts',
  'test/services/platform/tasks/mail.test.ts',
  'test/services/platform/tasks/daemon.test.ts',
  'test/services/platform/daemon/provider-daemon.test.ts',
  'test/services/platform/processes.test.ts',
  'test/services/payment/ledger.test.ts',
  'test/services/payment/billing.test.ts',
  'test/services/payment/system.test.ts',
  'test/services/payment/upload.test.ts',
  'test/services/payment/dealing.test.ts',
  'test/services/payment/processes.test.ts',
  'test/services/network/embedded.test.ts',
  'test/services/network/offline.test.ts',
  'test/services/network/instances.test.ts',
  'test/services/network/kubo.test.ts',
  'test/services/payment/kubo-copies.test.ts',
  'test/services/gateway/index.test.ts',
  'test/services/gateway/deal-service.test.ts',
  'test/services/gateway/fences.test.ts',
  'test/services/gateway/versions.test.ts',
  'test/services/gateway/locks.test.ts',
  'test/services/gateway/lock-clock.test.ts',
  'test/services/gateway/lock-races.test.ts',
  'test/services/gateway/objects.test.ts',
  'test/services/gateway/deals.test.ts',
  'test/services/gateway/processes.test.ts',
  'test/services/gateway/failover.test.ts',
  'test/history/history.test.ts',
  'test/src/state/three-gateways.test.ts',
  'test/src/state/versions-under-faults.test.ts',
]

/** Tests of the door that need no plugin, and no embedded platform or payment. */
const alone = [
  'test/src/http/addressing.test.ts',
  'test/src/http/form/form.test.ts',
  'test/src/http/forwarded-client.test.ts',
  'test/src/http/send.test.ts',
  'test/src/auth/base-paths.test.ts',
  'test/src/auth/oracle.test.ts',
  'test/src/access/authorizer/acls-and-policies.test.ts',
  'test/src/access/authorizer/calls.test.ts',
  'test/src/access/authorizer/conditions.test.ts',
  'test/src/access/authorizer/identity-tags.test.ts',
  'test/src/access/authorizer/plugin-actions.test.ts',
  'test/src/access/authorizer/reach.test.ts',
  'test/src/access/decision/acl.test.ts',
  'test/src/access/decision/conditions.test.ts',
  'test/src/access/decision/decide.test.ts',
  'test/src/access/decision/elements.test.ts',
  'test/src/access/decision/malformed.test.ts',
  'test/src/access/listing.test.ts',
  'test/src/state/bucket-settings.test.ts',
  'test/src/state/files.test.ts',
  'test/src/state/folder-record.test.ts',
  'test/engines/sqlite.test.ts',
  'test/src/state/store-check.test.ts',
  'test/src/objects/encryption/key-file.test.ts',
  'test/src/objects/encryption/opened-download.test.ts',
  'test/src/objects/encryption/replaced-between.test.ts',
  'test/src/objects/encryption/sealed-source.test.ts',
  'test/src/objects/encryption/vectors.test.ts',
  'test/src/objects/lost-lock.test.ts',
  'test/src/objects/rewrap-object.test.ts',
  'test/src/objects/with-the-object.test.ts',
  'test/src/gateway/calls.test.ts',
  'test/src/gateway/failure-texts.test.ts',
]

/** Long rounds of tests that `npm test` runs for a few. */
const rounds = (count, hours, files) => ({
  files,
  env: { DEALGATE_STRESS_ROUNDS: String(count) },
  timeout: hours * HOURS,
})

/** @type {Readonly<Record<string, readonly Run[]>>} */
export const suites = {
  door: [{ files: ['test/common', 'test/engines', 'test/costs', 'test/history', 'test/promises', 'test/src'] }],
  'door-alone': [{ files: alone, env: { DEALGATE_TEST_PLUGINS: 'none' } }],
  services: [{ files: ['test/services'] }],
  plugins: [{ files: ['test/plugins', 'test/examples'] }],
  cli: [{ files: ['test/cli', 'test/bundle.test.ts', 'test/package.test.ts'] }],
  console: [{ files: ['test/console'] }],
  clients: [{ files: ['test/clients'] }],
  docs: [{ files: ['test/docs', 'test/deploy', 'test/architecture.test.ts'] }],
  postgres: [{ files: postgres, env: { DEALGATE_ENGINE: 'postgres' } }],
  nodes: [{ files: ['test/nodes'] }],
  fuzz: [{ files: ['test/fuzz'], env: { DEALGATE_FUZZ_ROUNDS: '100000' }, timeout: 2 * HOURS }],
  stress: [
    rounds(200, 2, [
      'test/plugins/deal/killed.test.ts',
      'test/plugins/deal/cold-objects.test.ts',
      'test/plugins/task/killed.test.ts',
      'test/plugins/pay/killed.test.ts',
      'test/services/payment/crashes.test.ts',
      'test/services/payment/large-content.test.ts',
      'test/src/state/flushed-store.test.ts',
      'test/src/state/shared-settings.test.ts',
      'test/src/gateway/listing.test.ts',
      'test/cli/account.test.ts',
      'test/src/server/gateway-calls.test.ts',
      'test/plugins/encryption/rewrap.test.ts',
      'test/history/history.test.ts',
    ]),
    rounds(100, 4, ['test/src/state/three-proxies.test.ts']),
    rounds(300, 4, ['test/src/state/three-gateways.test.ts']),
    rounds(500, 4, ['test/src/state/versions-under-faults.test.ts']),
    rounds(10, 4, ['test/plugins/batch/killed.test.ts']),
  ],
}
