import t, { type Test } from 'tap'
import { createLogger } from '../../../common/log.js'
import { IdentitySecrets, openFilLedger, SentRequests } from '../../../plugins/paid/index.js'
import type { PluginHost, Sealer } from '../../../src/api/plugin.js'
import { createSealer } from '../../../src/plugins/sealer.js'
import { openState } from '../../../src/state/open-state.js'
import { temporaryFolder } from '../../support/content/folders.js'

let now = Date.UTC(2026, 10, 21, 12)
/** What happens while a secret is being read. */
let onceOpened = async () => {}

/** What the parts of paid plugins use of their host: a state on the disk, and the time of the test. */
async function hostOf(t: Test): Promise<PluginHost> {
  const state = await openState({ data: temporaryFolder(t), log: createLogger({ level: 'silent' }) })
  t.teardown(() => state.close())
  const real = createSealer(async () => Buffer.alloc(32, 7))
  const sealer: Sealer = {
    seal: real.seal,
    async open(...args) {
      const text = await real.open(...args)
      await onceOpened()
      return text
    },
  }
  return { state, sealer, now: () => now } as unknown as PluginHost
}

t.test('money of a request that certainly had no effect may be spent again', async (t) => {
  const host = await hostOf(t)
  const ledger = openFilLedger(host, { cost: 'It costs', all: 'all' })
  const sent = new SentRequests<{ sent: number }>(host, { records: 'pay-sent', ledger, patienceSeconds: 60 })
  let isOwned = true
  const job = { job: { id: 'job' }, owned: () => isOwned, uncommit: async () => {} } as unknown as Parameters<
    typeof sent.reconcile
  >[0]
  const settled = () =>
    sent.reconcile(
      job,
      async () => 'none' as const,
      async () => 'found',
    )
  await ledger.reserve({ jobId: 'job', bucket: 'a', amount: 7n }, { all: 10n, bucket: undefined })
  await sent.begin('job', { sent: now })
  t.equal(await settled(), undefined, 'the service may still list it')
  now += 61_000
  isOwned = false
  t.equal(await settled(), undefined, 'another server runs the job')
  t.equal(await ledger.spentToday(), 7n)
  isOwned = true
  t.equal(await settled(), 'not-done')
  t.equal(await ledger.spentToday(), 0n)
  t.equal(await sent.get('job'), undefined)
})

t.test('a secret that was replaced meanwhile stays', async (t) => {
  const secrets = new IdentitySecrets<{ login: string }>(await hostOf(t), {
    records: 'pay-secrets',
    purpose: 'pay:login',
    hash: ({ secretAccessKey }) => secretAccessKey,
  })
  const identity = { accessKeyId: 'key', secretAccessKey: 'secret' }
  await secrets.set(identity, { login: 'first' })
  onceOpened = async () => {
    onceOpened = async () => {}
    await secrets.set(identity, { login: 'second' })
  }
  await secrets.change(identity, () => undefined)
  t.same(await secrets.get(identity), { login: 'second' })
  t.equal(await secrets.get({ ...identity, secretAccessKey: 'rotated' }), undefined)
  await secrets.change(identity, () => undefined)
  t.equal(await secrets.get(identity), undefined)
})
