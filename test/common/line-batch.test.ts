import { spawn, spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { LineBatch } from '../../common/files/line-batch.js'
import { temporaryFolder } from '../support/content/folders.js'
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

t.test('no line is lost when a process ends', async (t) => {
  const path = join(temporaryFolder(t), 'lines')
  const log = new URL('../../common/log.js', import.meta.url).href
  const file = new URL('../../common/files/line-file.js', import.meta.url).href
  const batch = new URL('../../common/files/line-batch.js', import.meta.url).href
  const run = (end: string) =>
    spawnSync(process.execPath, [
      ...['--conditions=dealgate-source', '--input-type=module', '--eval'],
      `import { createLogger } from '${log}'
       import { LineFile } from '${file}'
       import { LineBatch } from '${batch}'
       const file = await LineFile.open({ path: '${path}' })
       const lines = new LineBatch({ write: (all) => file.writeAll(all), writeNow: (all) => file.writeNow(all) })
       const log = createLogger({ level: 'info' })
       for (let n = 0; n < 300; n++) {
         log.info({ n }, 'logged')
         lines.add('written ' + n)
       }
       ${end}`,
    ])
  for (const [end, status] of [
    ['process.exit(3)', 3],
    ["throw new Error('a fault')", 1],
    ['', 0],
  ] as const) {
    const ended = run(end)
    t.equal(ended.status, status, String(ended.stderr).slice(-500))
    const logged = String(ended.stderr)
      .split('\n')
      .filter((line) => line.includes('"logged"'))
    t.same(
      logged.map((line) => JSON.parse(line).n),
      [...Array(300).keys()],
      `the log, with ${end || 'no end'}`,
    )
  }
  const written = readFileSync(path, 'utf8').trimEnd().split('\n')
  const each = Array.from({ length: 300 }, (_, n) => `written ${n}`)
  t.same(written, [...each, ...each, ...each], 'the file')
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
