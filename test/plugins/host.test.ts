import { definePlugin, type PluginHost, type Records } from 'dealgate'
import t, { type Test } from 'tap'
import { startPlugins } from '../../src/plugins/running-plugins.js'
import { openState } from '../../src/state/open-state.js'
import { startInProcess } from '../support/server/in-process.js'
import { keptLog } from '../support/server/kept-log.js'
import { until } from '../support/waiting.js'

/** Starts a plugin over a state that says it is shared, as one of several servers would. */
async function startOver(t: Test, data: string, start: (host: PluginHost) => Promise<void>) {
  const { log, lines } = keptLog()
  const opened = await openState({ data, log })
  t.teardown(() => opened.close())
  const { records, locks } = opened
  const state = Object.assign(Object.create(opened), { shared: true, records: records.bind(opened), locks })
  const plugin = definePlugin({ name: 'timed', create: () => ({ operations: [], start }) })()
  const shared = { state, now: Date.now } as unknown as Parameters<typeof startPlugins>[1]
  return { lines, state, log, stop: await startPlugins([plugin], shared, log) }
}

t.test('create() gets the host to build on, which works from start() on', async (t) => {
  let host: PluginHost | undefined
  let counts: Records<number> | undefined
  const counter = definePlugin({
    name: 'counter',
    create(_, given) {
      host = given
      counts = given.state.records<number>('counter-counts')
      return {
        operations: [],
        async start(same) {
          t.equal(same.own, given.own, 'start() gets the same one')
          await counts?.set('one', 1)
        },
      }
    },
  })
  const plugin = counter()
  t.throws(() => host?.own, /"counter" uses host\.own before the server has started it/)
  await t.rejects(async () => counts?.get('one'), /"counter" uses host\.state before/)
  await startInProcess(t, 'full', { plugins: [plugin] })
  t.equal(await counts?.get('one'), 1)
  t.type(host?.own.jobs.create, 'function')
  t.equal(await host?.state.locks.withName('counter', async () => 'held'), 'held')
})

t.test('periodic work: one server at a time, again after a failure, ended by the stop', async (t) => {
  const data = t.testdir()
  let runs = 0
  let free = 0
  let ended = false
  const { lines, state, log, stop } = await startOver(t, data, async (host) => {
    host.schedule({
      name: 'work',
      everySeconds: 0.02,
      atStart: true,
      async run({ signal, mayGoOn }) {
        runs++
        if (runs === 1) throw new Error('not yet')
        if (!mayGoOn()) return
        await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
        ended = !mayGoOn()
      },
    })
  })
  await until('it runs again after its failure', () => runs === 2)
  t.match(
    lines.find(({ msg }) => msg?.startsWith('periodic work failed')),
    { work: 'work', plugin: 'timed' },
  )
  const other = definePlugin({
    name: 'timed',
    create: () => ({
      operations: [],
      async start(host) {
        if ((await host.lease('work')) === undefined) free++
        const spare = await host.lease('spare')
        t.ok(spare?.held(), 'another lease is free')
        await spare?.release()
      },
    }),
  })()
  const shared = { state, now: Date.now } as unknown as Parameters<typeof startPlugins>[1]
  const stopOther = await startPlugins([other], shared, log)
  t.equal(free, 1, 'another server does not get the lease of a run under way')
  await stopOther()
  await stop()
  t.ok(ended, 'the stop signals the run and waits for it')
  t.equal(runs, 2)
})

t.test('periodic work without an interval keeps the plugin from starting', async (t) => {
  for (const everySeconds of [0, Number.NaN, 2_000_000, Number.POSITIVE_INFINITY]) {
    const start = async (host: PluginHost) => host.schedule({ name: 'work', everySeconds, run: async () => {} })
    await t.rejects(startOver(t, t.testdir(), start), /everySeconds of work must be more than 0/, String(everySeconds))
  }
})

t.test('a plugin that was stopped schedules nothing', async (t) => {
  let host: PluginHost | undefined
  const { stop } = await startOver(t, t.testdir(), async (given) => {
    host = given
  })
  await stop()
  t.throws(() => host?.schedule({ name: 'work', everySeconds: 1, run: async () => {} }), /after it was stopped/)
})
