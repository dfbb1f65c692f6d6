import t from 'tap'
import { CsvReader, csvLine, decodeKey, encodeKey } from '../../../src/s3/batch/csv.js'
import { Turns } from '../../../src/s3/batch/turns.js'

const never = new AbortController().signal
const ignored = () => {}

t.test('of the jobs of an owner that wait, the one of the highest priority is next', async (t) => {
  const turns = new Turns(1)
  const order: string[] = []
  const first = await turns.enter({ owner: '', priority: () => 0, signal: never, onWait: () => order.push('never') })
  const work = async (name: string, priority: () => number, signal = never) => {
    const onWait = () => order.push(`${name} waits`)
    const turn = await turns.enter({ owner: '', priority, signal, onWait })
    order.push(name)
    turn.leave()
  }
  let raised = 1
  const gone = new AbortController()
  const all = [work('low', () => raised), work('high', () => 5), work('low too', () => 1)]
  const given = t.rejects(work('gone', () => 9, gone.signal))
  gone.abort()
  raised = 7
  first.leave()
  await Promise.all([...all, given])
  t.same(order, ['low waits', 'high waits', 'low too waits', 'gone waits', 'low', 'high', 'low too'])
})

t.test('owners have turns in rotation, whatever the priority and length of the work of others', async (t) => {
  let now = 0
  const turns = new Turns(1, () => now)
  const order: string[] = []
  const enter = (owner: string, priority: number) =>
    turns.enter({ owner, priority: () => priority, signal: never, onWait: ignored })
  const slow = await enter('a', 9)
  const work = async (owner: string, name: string) => {
    const turn = await enter(owner, name === 'b1' ? 1 : 9)
    order.push(name)
    turn.leave()
  }
  const others = [work('a', 'a2'), work('b', 'b1'), work('a', 'a3'), work('b', 'b2')]
  now = 4999
  await slow.renew()
  t.same(order, [], 'the turn is not taken at once')
  now = 5000
  await Promise.all([slow.renew(), slow.renew()])
  t.ok(order.includes('b2'), 'another owner has a turn while the first has more to do')
  slow.leave()
  await Promise.all(others)
  t.same(order, ['b2', 'a2', 'b1', 'a3'])
})

t.test('CSV comes in any pieces', async (t) => {
  const text = 'a,"b ""c"",\n",\r\n\n"",x\r\nlast'
  const rows = [['a', 'b "c",\n', ''], ['', 'x'], ['last']]
  for (let size = 1; size <= text.length; size++) {
    const csv = new CsvReader(3)
    const found: string[][] = []
    for (let at = 0; at < text.length; at += size) found.push(...csv.push(text.slice(at, at + size)))
    t.same([...found, ...csv.end()], rows)
  }
  t.throws(() => [...new CsvReader(3).push('x'.repeat(9000))], RangeError)
  const key = 'a/b c+%ü"\n'
  t.equal(decodeKey(encodeKey(key)), key)
  const csv = new CsvReader(4)
  t.same([...csv.push(csvLine(['a', 'b"c', 'd\n', '']))], [['a', 'b"c', 'd\n', '']])
})

t.test('a line of more fields than columns ends at the first of them', async (t) => {
  const csv = new CsvReader(2)
  t.same([...csv.push('a,b\n')], [['a', 'b']])
  t.throws(() => [...csv.push(','.repeat(1_000_000))], { message: 'a line has more than 2 fields' })
})
