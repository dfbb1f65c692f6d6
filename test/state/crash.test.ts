import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { createLogger } from '../../src/common/log.js'
import { openState } from '../../src/state/open-state.js'
import { temporaryFolder } from '../support/content/folders.js'
import { endsWithUs, killed } from '../support/server/child.js'
import { readPart } from './samples.js'

const log = createLogger({ level: 'silent' })
const program = fileURLToPath(new URL('./crash-child.js', import.meta.url))

/** Kills with SIGKILL after so many acknowledgements, parts among them; gives all that were printed. */
async function runUntilKilled(child: ChildProcessByStdio<null, Readable, null>, count: number): Promise<string[]> {
  const ended = new Promise((resolve) => child.once('exit', resolve))
  const lines: string[] = []
  let parts = 0
  for await (const line of createInterface({ input: child.stdout })) {
    lines.push(line)
    if (line.startsWith('part ')) parts++
    if (lines.length >= count && parts >= 50) child.kill('SIGKILL')
  }
  await ended
  return lines
}

t.test('kill -9 loses nothing that was acknowledged and frees the folder', async (t) => {
  const data = temporaryFolder(t)
  for (let round = 0; round < 3; round++) {
    const uploadId = randomUUID()
    const child = spawn(process.execPath, [program, data, uploadId], { stdio: ['ignore', 'pipe', 'inherit'] })
    endsWithUs(child)
    t.teardown(() => killed(child))
    const lines = await runUntilKilled(child, 400 + round * 37)
    t.equal(child.signalCode, 'SIGKILL')

    const state = await openState({ data, log })
    try {
      const keys = lines.filter((line) => line.startsWith('object ')).map((line) => line.slice('object '.length))
      t.ok(keys.length > 0)
      const records = await state.objects.getMany('b', keys)
      t.same(
        records.map((record) => record?.key),
        keys,
        'every object record',
      )
      const parts = await state.uploads.listParts(uploadId, 0, 1000)
      const found = new Set(parts.map((part) => part.partNumber))
      const told = new Set(lines.filter((line) => line.startsWith('part ')).map((line) => Number(line.slice(5))))
      t.ok(told.size > 0)
      t.same(
        [...told].filter((number) => !found.has(number)),
        [],
        'every part',
      )
      for (const part of parts) {
        const bytes = await readPart(state, uploadId, part)
        if (!bytes.equals(Buffer.alloc(1000 + part.partNumber, part.partNumber)))
          t.fail(`bytes of part ${part.partNumber}`)
      }
      await state.uploads.abort(uploadId)
      t.same(readdirSync(join(data, 'staging')), [], 'nothing is left of the upload')
    } finally {
      await state.close()
    }
  }
})

t.test('one process at a time', async (t) => {
  const data = temporaryFolder(t)
  const child = spawn(process.execPath, [program, data, randomUUID()], { stdio: ['ignore', 'pipe', 'inherit'] })
  endsWithUs(child)
  t.teardown(() => killed(child))
  await new Promise((resolve) => child.stdout.once('data', resolve))
  await t.rejects(openState({ data, log }), { code: 'DATA_IN_USE' })
  await killed(child)
  await (await openState({ data, log })).close()
})
