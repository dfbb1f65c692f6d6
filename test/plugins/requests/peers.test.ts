import t, { type Test } from 'tap'
import { LastRequests } from '../../../plugins/requests/look.js'
import { Peers } from '../../../plugins/requests/peers.js'

const ALL = { all: true, accessKeyId: 'owner', buckets: [] }
const QUESTION = { viewer: ALL, filter: {}, max: 1000 }
const ENDED = {
  ...{ operation: 'GetObject', method: 'GET', bucket: 'photos', key: 'a', status: 200, ms: 1, bytesIn: 0 },
  ...{ bytesOut: 1, cut: false, remote: '::1' },
}

/** A board among processes. @param lost whether a message does not arrive */
function boardOf(lost: (message: string) => boolean = () => false) {
  const listeners = new Map<number, (text: string) => void>()
  const messages: string[] = []
  const signalsOf = (me: number) => ({
    send(text: string) {
      messages.push(text)
      for (const [other, heard] of listeners) if (other !== me && !lost(text)) queueMicrotask(() => heard(text))
    },
    on(heard: (text: string) => void) {
      listeners.set(me, heard)
      return () => void listeners.delete(me)
    },
  })
  return { messages, signalsOf }
}

function processesOn(t: Test, count: number, { signalsOf }: ReturnType<typeof boardOf>) {
  return [...Array(count).keys()].map((n) => {
    const last = new LastRequests(() => 1000 + n)
    const peers = new Peers(signalsOf(n), (question, name) => last.find(question, name))
    t.teardown(() => peers.close())
    return { last, peers }
  })
}

async function idsBy(peers: Peers | undefined) {
  const { answers, silent } = (await peers?.ask(QUESTION)) ?? { answers: new Map(), silent: 0 }
  const ids = [...answers.values()].flatMap(({ requests }) =>
    requests.map(([, { requestId }]: [number, { requestId: string }]) => requestId),
  )
  return { ids: ids.sort(), silent }
}

t.test('each process answers for all, in messages that every store can carry', async (t) => {
  const board = boardOf()
  const [one, two, three] = processesOn(t, 3, board)
  await new Promise(setImmediate)
  one?.last.add({ ...ENDED, requestId: 'one' })
  for (let n = 0; n < 20; n++) two?.last.add({ ...ENDED, requestId: `two-${n + 10}`, key: '\u202e"\n💶'.repeat(100) })
  for (const process of [one, two, three]) {
    const { ids, silent } = await idsBy(process?.peers)
    t.equal(ids.length, 21)
    t.equal(silent, 0)
  }
  t.ok(board.messages.length > 30, 'a long answer is several messages')
  t.same(
    board.messages.filter((message) => message.includes('\n') || Buffer.byteLength(message) > 1000),
    [],
  )
  two?.peers.close()
  t.same(await idsBy(one?.peers), { ids: ['one'], silent: 0 }, 'one that has ended is not waited for')
})

t.test('a process that does not answer is named as missing once, and messages of others are ignored', async (t) => {
  let isLost = false
  const board = boardOf((message) => isLost && message.startsWith('found'))
  const [one, two] = processesOn(t, 2, board)
  await new Promise(setImmediate)
  one?.last.add({ ...ENDED, requestId: 'one' })
  two?.last.add({ ...ENDED, requestId: 'two' })
  isLost = true
  t.same(await idsBy(one?.peers), { ids: ['one'], silent: 1 })
  t.same(await idsBy(one?.peers), { ids: ['one'], silent: 0 }, 'nobody waits for it again')
  isLost = false
  t.same((await idsBy(two?.peers)).ids, ['one', 'two'], 'its question shows that it is there')
  const stranger = board.signalsOf(9)
  const name = 'abcdef01'
  for (const text of ['', 'x', `ask ${name}`, `ask ${name} - 1 0 1 !!`, `ask ${name} - 1 0 99999999 e30`])
    stranger.send(text)
  stranger.send(`found ${name} ${one?.peers.name} 3 0 1 ${Buffer.from('{"requests":1}').toString('base64url')}`)
  stranger.send(`gone ${name} - 0 0 1 `)
  await new Promise(setImmediate)
  t.same(await idsBy(one?.peers), { ids: ['one', 'two'], silent: 0 })
})
