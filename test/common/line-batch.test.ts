import { spawn } from 'node:child_process'
import t from 'tap'
import { LineBatch } from '../../common/files/line-batch.js'
import { until } from '../support/waiting.js'

const LINES = Array.from({ length: 5 }, (_, n) => `line ${n}`)

t.test('lines are written together, and those above a bound at once', async (t) => {
  const writes: (readonly string[])[] = []
  const batch = new LineBatch({ write: (lines) => writes.push(lines), writeNow: () => t.fail('nothing has ended') })
  for (const line of LINES) batch.add(line)
  t.same(writes, [], 'a line waits for those that follow')
  await until('the lines are written', () => writes.length > 0)
  t.same(writes, [LINES])
  batch.flush()
  batch.add('one')
  batch.flush()
  batch.flush()
  t.same(writes, [LINES, ['one']], 'a flush writes what waits, and nothing otherwise')
  batch.add('x'.repeat(64 * 1024))
  t.equal(writes.length, 3, 'a long line does not wait')
})

t.test('a warning does not wait, nor what was logged before it', async (t) => {
  const log = new URL('../../common/log.js', import.meta.url).href
  const child = spawn(process.execPath, [
    ...['--conditions=dealgate-source', '--input-type=module', '--eval'],
    `import { createLogger } from '${log}'
     setInterval(() => {}, 1000)
     globalThis.setTimeout = () => ({ unref() {} })
     const log = createLogger({ level: 'info' })
     log.info('before')
     log.warn('seen')`,
  ])
  t.teardown(() => child.kill('SIGKILL'))
  let text = ''
  child.stderr.on('data', (bytes) => {
    text += bytes
  })
  await until('the warning is there', () => /before[\s\S]*seen/.test(text))
  t.pass('without the timer of the batch')
})
