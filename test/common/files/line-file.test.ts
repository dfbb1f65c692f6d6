import { readFileSync, renameSync, statSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { LineFile } from '../../../src/common/files/line-file.js'
import { temporaryFolder } from '../../support/content/folders.js'

t.test('lines are appended whole, in their order, also by two writers', async (t) => {
  const path = join(temporaryFolder(t), 'lines')
  const files = [await LineFile.open({ path }), await LineFile.open({ path, durable: true })]
  const long = 'x'.repeat(3000)
  await Promise.all(
    files.flatMap((file, n) => Array.from({ length: 300 }, (_, line) => file.write(`${n} ${line} ${long}`))),
  )
  for (const file of files) await file.close()
  const lines = readFileSync(path, 'utf8').trimEnd().split('\n')
  t.equal(lines.length, 600)
  for (const n of [0, 1]) {
    const own = lines.filter((line) => line.startsWith(`${n} `))
    t.same(
      own,
      Array.from({ length: 300 }, (_, line) => `${n} ${line} ${long}`),
    )
  }
  t.equal(statSync(path).mode & 0o777, 0o600)
})

t.test('after a rotation, lines go to the new file, and none is lost', async (t) => {
  const path = join(temporaryFolder(t), 'lines')
  const file = await LineFile.open({ path })
  const first = file.write('1')
  renameSync(path, `${path}.1`)
  const reopened = file.reopen()
  await Promise.all([first, reopened, file.write('2')])
  await file.write('3')
  await file.close()
  t.equal(readFileSync(`${path}.1`, 'utf8') + readFileSync(path, 'utf8'), '1\n2\n3\n')
  t.match(readFileSync(path, 'utf8'), /3\n$/)
})
