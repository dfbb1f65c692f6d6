import t from 'tap'
import { CsvReader, csvLine, decodeKey, encodeKey } from '../../../plugins/batch/csv.js'
import { Turns } from '../../../plugins/batch/turns.js'

const never = new AbortController().signal

/** Takes a turn, and tells in `order` when it has waited and when it works. */
function player(turns: Turns, order: string[]) {
  return async (name: string, priority = () => 0, owner = '', signal = never) => {
    const leave = await turns.enter({ owner, priority, signal, onWait: () => order.push(`${name} waits`) })
    order.push(name)
    return leave
  }
}

t.test('of the jobs of an owner that wait, the one of the highest priority is next', async (t) => {
  const order: string[] = []
  const enter = player(new Turns({ most: 1, mostLong: 0 }), order)
  const leave = await enter('first')
  let raised = 1
  const gone = new AbortController()
  const work = (...args: Parameters<typeof enter>) => enter(...args).then((end) => end())
  const all = [work('low', () => raised), work('high', () => 5), work('low too', () => 1)]
  const given = t.rejects(enter('gone', () => 9, '', gone.signal))
  gone.abort()
  raised = 7
  leave()
  leave()
  await Promise.all([...all, given])
  t.same(order, ['first', 'low waits', 'high waits', 'low too waits', 'gone waits', 'low', 'high', 'low too'])
})

t.test('owners have turns in rotation, whatever the priority of others', async (t) => {
  const order: string[] = []
  const enter = player(new Turns({ most: 1, mostLong: 0 }), order)
  const leave = await enter('a1', () => 9, 'a')
  const work = (name: string, priority: number) => enter(name, () => priority, name[0]).then((end) => end())
  const others = [work('a2', 9), work('b1', 1), work('a3', 9), work('b2', 9)]
  leave()
  await Promise.all(others)
  t.same(order.slice(5), ['b2', 'a2', 'b1', 'a3'])
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
