import { readFileSync } from 'node:fs'
import { register } from 'node:module'
import { MessagePort } from 'node:worker_threads'
import t from 'tap'

register('./statement-hooks.js', import.meta.url)
const { ran } = await import('./counted-sqlite.js')
const { startInProcess } = await import('../../support/server/in-process.js')

/** Messages between the proxy and the gateway, both of which are in this process. */
const messages: unknown[] = []
const { postMessage } = MessagePort.prototype
MessagePort.prototype.postMessage = function (...given: Parameters<MessagePort['postMessage']>) {
  const [message] = given
  if (Array.isArray(message)) messages.push(...message)
  return postMessage.apply(this, given)
}

type Counts = Readonly<Record<string, number>>

/** The table of services/gateway/README.md: for each of its writes, how often each statement is run. */
function stated(): ReadonlyMap<string, Counts> {
  const rows = readFileSync('services/gateway/README.md', 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('| '))
    .map((line) => line.split('|').map((cell) => cell.trim()))
  const [head = [], , ...body] = rows
  const writes = head.slice(2, -2)
  return new Map(
    writes.map((write, n) => [
      write,
      Object.fromEntries(
        body.flatMap((row) => {
          const [, statement = '', ...cells] = row
          return cells[n] === '' ? [] : [[statement.replaceAll('`', ''), Number(cells[n])]]
        }),
      ),
    ]),
  )
}

/** What a statement does to which table, as the README names it. */
function named(sql: string): string {
  const text = sql.replaceAll(/\s+/g, ' ').trim()
  const write = /^(INSERT OR REPLACE INTO|INSERT INTO|UPDATE|DELETE FROM) \w+/.exec(text)
  if (write) return write[0]
  return text.startsWith('SELECT') ? `SELECT FROM ${/ FROM (\w+) AS b /.exec(text)?.[1] ?? text}` : text
}

/** The statements between BEGIN and COMMIT that are about a key. */
function transactions(): string[][] {
  const found: string[][] = []
  let open: string[] | undefined
  for (const { file, sql } of ran) {
    if (file !== 'index.db') continue
    if (sql === 'BEGIN IMMEDIATE') open = []
    else if (sql === 'COMMIT' && open) {
      if (open.some((one) => one === 'SELECT FROM buckets')) found.push(open)
      open = undefined
    } else open?.push(named(sql))
  }
  return found
}

function counted(list: readonly string[]): Counts {
  const counts: Record<string, number> = {}
  for (const one of list) counts[one] = (counts[one] ?? 0) + 1
  return counts
}

const times = (counts: Counts, by: number): Counts =>
  Object.fromEntries(Object.entries(counts).map(([name, count]) => [name, count * by]))

t.test('a write is one message there, one back, and the statements of the table', async (t) => {
  const { s3 } = await startInProcess(t, 'full')
  const Bucket = 'bucket'
  await s3.createBucket({ Bucket })
  const Key = 'key'
  const put = (size: number, key = Key) => s3.putObject({ Bucket, Key: key, Body: 'x'.repeat(size) })
  const remove = (key = Key) => s3.deleteObject({ Bucket, Key: key })
  // The first write asks what the gateway can do, and with which account.
  await put(1, 'other')
  const writes: Readonly<Record<string, () => Promise<unknown>>> = {
    'New key': () => put(1024),
    'Same size': () => put(1024),
    'Other size': () => put(1000),
    Removal: () => remove(),
    'Missing key': () => remove(),
    'After a removal': () => put(1024),
  }
  const table = stated()
  t.same([...table.keys()].sort(), Object.keys(writes).sort(), 'each write of the table is tried')
  const measure = async (write: () => Promise<unknown>) => {
    ran.length = 0
    messages.length = 0
    await write()
    const found = transactions()
    return { found, statements: counted(found.flat()), sent: messages.length, ofState: writesOf('records.sqlite') }
  }
  for (const [name, write] of Object.entries(writes)) {
    const { found, statements, sent, ofState } = await measure(write)
    t.same(statements, table.get(name), name)
    t.equal(found.length, 1, `${name}: one transaction`)
    t.equal(sent, 2, `${name}: one message there and one back`)
    t.same(ofState, [], `${name}: nothing is written to the state`)
  }

  const keys = ['a', 'b', 'c']
  for (const key of keys) await put(10, key)
  const Delete = { Objects: keys.map((key) => ({ Key: key })) }
  const many = await measure(() => s3.deleteObjects({ Bucket, Delete }))
  t.same(many.statements, times(table.get('Removal') as Counts, keys.length), 'each key of DeleteObjects as a removal')
  const asked = messages.filter((message) => JSON.stringify(message).includes('web.RemoveObject'))
  t.equal(asked.length, keys.length, 'one message for each key')
  t.same(many.ofState, [])
})

/** Statements that write to the database in a file of this name. */
function writesOf(name: string): string[] {
  return ran.filter(({ file, sql }) => file === name && !/^\s*(SELECT|PRAGMA)\b/.test(sql)).map(({ sql }) => sql)
}
