import { closeSync, openSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { MessageChannel } from 'node:worker_threads'
import t, { type Test } from 'tap'
import { FIRST_WINDOW_BYTES, type FromServer, PortOutbox } from '../../../common/port-messages.js'
import { PortRequest, PortResponse } from '../../../services/http/port.js'
import type { Span } from '../../../services/http/range.js'
import { replyContent } from '../../../services/http/send.js'
import { chunkBytesOf } from '../../../services/store/chunk-sums.js'
import { bytes } from '../../support/content/content.js'
import { temporaryFolder } from '../../support/content/folders.js'

// A client in this process that takes one window of a file at a time.

const KiB = 1024
const GiB = KiB * KiB * KiB
const SIZE = 1024 * KiB + 7
const content = bytes('slow', SIZE)

/** Reads a file by windows. Resolves with its bytes, and what was compared and sent for them. */
async function readSlowly(t: Test, chunkBytes: number, span: Span | undefined, windowBytes: number) {
  const file = join(temporaryFolder(t), 'file')
  writeFileSync(file, content)
  const fd = openSync(file, 'r')
  const { port1, port2 } = new MessageChannel()
  t.teardown(() => {
    port1.close()
    closeSync(fd)
  })
  const outbox = new PortOutbox<FromServer>(port1)
  const response = new PortResponse(1, outbox, () => {})
  const parts: Buffer[] = []
  let [compared, memory] = [0, 0]
  let left = FIRST_WINDOW_BYTES
  const over = new Promise<boolean>((resolve) => {
    port2.on('message', (messages: readonly FromServer[]) => {
      for (const [, what] of messages) {
        if (typeof what === 'boolean') resolve(what)
        if (typeof what !== 'object' || what === null) continue
        parts.push(Buffer.from(what))
        memory = Math.max(memory, what.buffer.byteLength - 2 * what.length)
        left -= what.length
        if (left > 0) continue
        left += windowBytes
        response.granted(windowBytes)
      }
    })
  })
  const request = new PortRequest([1, 'GET', '/', {}])
  const check = {
    chunkBytes,
    verify: async (position: number, found: Uint8Array) => {
      compared += found.length
      t.ok(content.subarray(position, position + found.length).equals(found))
    },
  }
  await replyContent({ request, response }, { fd, check }, SIZE, span, [], 60_000)
  t.equal(await over, true, 'it is whole')
  const { first, last } = span ?? { first: 0, last: SIZE - 1 }
  t.ok(Buffer.concat(parts).equals(content.subarray(first, last + 1)), 'these are the bytes')
  return { compared, memory }
}

t.test('each chunk is read and compared once, and little memory goes with the bytes', async (t) => {
  for (const size of [1, 64 * KiB * KiB, 64 * KiB * KiB + 1, GiB, 256 * GiB]) {
    const chunkBytes = chunkBytesOf(size)
    for (const span of [undefined, { first: chunkBytes - 1, last: 3 * chunkBytes + 1 }, { first: 5, last: SIZE - 2 }]) {
      const { compared, memory } = await readSlowly(t, chunkBytes, span, FIRST_WINDOW_BYTES)
      const { first, last } = span ?? { first: 0, last: SIZE - 1 }
      t.ok(compared <= last - first + 1 + 2 * chunkBytes, `${compared} bytes in chunks of ${chunkBytes}`)
      t.ok(memory < KiB, `${memory} bytes of memory besides`)
    }
  }
})

t.test('a huge body has larger chunks, which are read again for a slow reader', async (t) => {
  const chunkBytes = chunkBytesOf(256 * GiB + 1)
  t.equal(chunkBytes, 512 * KiB)
  for (const windowBytes of [1000, FIRST_WINDOW_BYTES, 100 * KiB, 480 * KiB]) {
    for (const span of [undefined, { first: chunkBytes - 1, last: SIZE - 2 }])
      await readSlowly(t, chunkBytes, span, windowBytes)
  }
})
