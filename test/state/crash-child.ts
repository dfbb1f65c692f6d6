import { createLogger } from '../../src/common/log.js'
import { openState } from '../../src/state/open-state.js'
import { heldLock, objectRecord, partRecord, uploadRecord } from './samples.js'

/**
 * Writes records and parts without end into the data folder given, and prints a line for each that was acknowledged.
 * Made to be killed.
 */
const [data = '', uploadId = ''] = process.argv.slice(2)
const state = await openState({ data, log: createLogger({ level: 'silent' }) })
await state.uploads.create(uploadRecord({ uploadId }))

async function writeObjects(lane: number): Promise<never> {
  for (let i = 0; ; i++) {
    const key = `${lane}/${i}`
    await state.objects.set(objectRecord('b', key), heldLock())
    process.stdout.write(`object ${key}\n`)
  }
}

async function writeParts(lane: number): Promise<never> {
  for (let i = 0; ; i++) {
    // Numbers come round again, so that the kill also falls between a part and the one it replaces.
    const number = lane * 10 + (i % 10) + 1
    const writer = await state.uploads.openPart(uploadId, number)
    const bytes = Buffer.alloc(1000 + number, number)
    await writer.write(bytes)
    await state.uploads.putPart(uploadId, partRecord(number, bytes.length, await writer.finish()))
    process.stdout.write(`part ${number}\n`)
  }
}

await Promise.all([0, 1, 2, 3].flatMap((lane) => [writeObjects(lane), writeParts(lane)]))
