import t from 'tap'
import { CsvReader, csvLine, decodeKey, encodeKey } from '../../../src/s3/batch/csv.js'
import { Turns } from '../../../src/s3/batch/turns.js'

t.test('of those that wait, the one of the highest priority is next', async (t) => {
  const turns = new Turns(1)
  const never = new AbortController().signal
  const order: string[] = []
  const leave = await turns.enter(
    () => 0,
    never,
    () => order.push('never'),
  )
  const work = async (name: string, priority: () => number, signal = never) => {
    const end = await turns.enter(priority, signal, () => order.push(`${name} waits`))
    order.push(name)
    end()
  }
  let raised = 1
  const gone = new AbortController()
  const all = [work('low', () => raised), work('high', () => 5), work('low too', () => 1)]
  const given = t.rejects(work('gone', () => 9, gone.signal))
  gone.abort()
  raised = 7
  leave()
  await Promise.all([...all, given])
  t.same(order, ['low waits', 'high waits', 'low too waits', 'gone waits', 'low', 'high', 'low too'])
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
