import { defineCall, definePlugin, z } from 'dealgate'
import t, { type Test } from 'tap'
import { startInProcess } from '../../support/server/in-process.js'
import { send } from '../../support/sign/send.js'
import { until } from '../../support/waiting.js'

/** Plugins that are replaced by others with other options while the server runs. */

/** A promise that the test resolves. */
function gate() {
  let open = () => {}
  const passed = new Promise<void>((resolve) => {
    open = resolve
  })
  return { passed, open }
}

/** A plugin that tells which of its copies does what. `wait` and `job` are gates that its work passes. */
function wordPlugin() {
  const events: string[] = []
  const waits = gate()
  const job = gate()
  const plugin = definePlugin({
    name: 'word',
    options: z.object({ word: z.string(), fails: z.boolean().default(false), more: z.boolean().default(false) }),
    create({ word, fails, more }, host) {
      const call = (name: string, answer: () => Promise<{ Word: string }>) =>
        defineCall({
          name,
          source: 'test',
          summary: name,
          access: 'signed',
          on: { method: 'GET', resource: 'service', path: `/-/word/v1/${name}` },
          result: z.object({ Word: z.string() }),
          answer,
        })
      return {
        operations: [
          call('now', async () => ({ Word: word })),
          call('later', async () => {
            await waits.passed
            return { Word: word }
          }),
          call('begin', async () => {
            const { id } = await host.own.jobs.create({ kind: 'word:Work', resource: '/b', input: {}, accessKeyId: '' })
            return { Word: id }
          }),
          ...(more ? [call('more', async () => ({ Word: word }))] : []),
        ],
        jobs: [
          {
            name: 'word:Work',
            async run() {
              events.push(`job ${word}`)
              await job.passed
              return word
            },
          },
        ],
        gauges: [
          { name: 'length', help: 'Length of the word.', read: async () => [{ labels: {}, value: word.length }] },
        ],
        hooks: { objectStored: async () => void events.push(`hook ${word}`) },
        async start() {
          events.push(`start ${word}`)
          host.schedule({
            name: 'work',
            everySeconds: 60,
            atStart: true,
            async run({ signal }) {
              events.push(`work ${word}`)
              await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
              events.push(`work ends ${word}`)
            },
          })
          if (fails) throw new Error('no')
        },
        stop: async () => void events.push(`stop ${word}`),
      }
    },
  })
  return { plugin, events, waits, job }
}

async function start(t: Test) {
  const { plugin, ...rest } = wordPlugin()
  const first = plugin({ word: 'one' })
  const other = definePlugin({ name: 'other', create: () => ({ operations: [] }) })()
  const server = await startInProcess(t, 'full', { plugins: [first, other] })
  const who = { endpoint: server.endpoint, region: 'us-east-1', accessKey: 'test-key', secretKey: 'test-secret' }
  const get = async (target: string) => send(who, { method: 'GET', target })
  const word = async (name: string) => {
    const { status, body } = await get(`/-/word/v1/${name}?format=json`)
    return status === 200 ? JSON.parse(String(body)).Word : status
  }
  const put = (target: string) => send(who, { method: 'PUT', target })
  return { ...rest, ...server, plugin, first, other, get, word, put }
}

t.test('requests, jobs, hooks, gauges and periodic work pass to the new one', async (t) => {
  const { plugin, other, proxy, events, waits, job, get, word, put } = await start(t)
  await until('the work runs', () => events.includes('work one'))
  t.equal((await put('/bucket')).status, 200)
  const inProgress = word('later')
  const running = await word('begin')
  await until('the job runs', () => events.includes('job one'))
  events.length = 0

  const prepared = await proxy.prepare({ plugins: [plugin({ word: 'second', more: true }), other] })
  t.equal(await word('now'), 'one', 'not before it is applied')
  t.equal(await word('more'), 404)
  t.same(events, ['start second'], 'its periodic work waits')
  await prepared.apply()
  t.equal(await word('now'), 'second')
  t.equal(await word('more'), 'second', 'an operation that the former one did not have')
  t.ok(proxy.operations.some(({ operation }) => operation.name === 'more'))
  await until('the periodic work has passed', () => events.includes('work second'))
  t.same(events, ['start second', 'work ends one', 'work second'], 'one after the other')
  t.equal((await put('/bucket/key')).status, 200)
  t.ok(events.includes('hook second') && !events.includes('hook one'))
  const scraped = String((await get('/-/metrics')).body)
  t.match(scraped, /^dealgate_word_length 6$/m)
  t.match(scraped, /operation="more",plugin="word",status="200"/)

  const next = await word('begin')
  await until('another job runs', () => events.includes('job second'))
  waits.open()
  t.equal(await inProgress, 'one', 'a request in progress ends as it began')
  t.notOk(events.includes('stop one'), 'a job needs it')
  job.open()
  await until('the former one has stopped', () => events.includes('stop one'))
  const resultOf = async (id: unknown) => JSON.parse(String((await get(`/-/jobs/v1/${id}?format=json`)).body)).Result
  t.equal(await resultOf(running), 'one', 'a job in progress ends as it began')
  await until('the other job has ended', async () => (await resultOf(next)) === 'second')
  t.notOk(events.includes('stop second'))
})

t.test('nothing changes if one cannot start, has other names or is the same', async (t) => {
  const { plugin, first, other, proxy, events, word } = await start(t)
  await until('the work runs', () => events.includes('work one'))
  events.length = 0
  await t.rejects(proxy.prepare({ plugins: [plugin({ word: 'bad', fails: true }), other] }), /failed to start: no/)
  t.same(events, ['start bad', 'stop bad'])
  await t.rejects(proxy.prepare({ plugins: [first] }), /not which plugins it has/)
  const given = await proxy.prepare({ plugins: [plugin({ word: 'unused' }), other] })
  await given.discard()
  t.same(events.slice(2), ['start unused', 'stop unused'])
  await (await proxy.prepare({ plugins: [first, other] })).apply()
  await (await proxy.prepare({})).apply()
  t.equal(await word('now'), 'one')
  t.equal(events.length, 4, 'the work of the first one goes on')
})

t.test('a server that stops meanwhile stops both', async (t) => {
  const { plugin, other, proxy, events, word, job } = await start(t)
  await word('begin')
  await until('the job runs', () => events.includes('job one'))
  await (await proxy.prepare({ plugins: [plugin({ word: 'second' }), other] })).apply()
  job.open()
  await proxy.close()
  t.same(events.filter((event) => event.startsWith('stop')).sort(), ['stop one', 'stop second'])
})
