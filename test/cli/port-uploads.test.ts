import { randomBytes } from 'node:crypto'
import { setImmediate as turn } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { PortWire } from '../../cli/serve/wire/port-wire.js'
import { FIRST_WINDOW_BYTES, PART_BYTES, portTo } from '../../common/port-messages.js'
import { receive } from '../../services/http/body.js'
import type { BodySink } from '../../services/http/body-sink.js'
import { PortClients, type PortRequest, type PortResponse } from '../../services/http/port.js'
import { PutInParts } from '../../src/gateway/objects/put-in-parts.js'
import { AnsweredEarly } from '../../src/gateway/objects/put-request.js'

const MIB = 1024 * 1024
const CHUNK = 64 * 1024
const IDLE_MS = 60_000

type Handler = (request: PortRequest, response: PortResponse) => unknown

function serve(t: Test, handler: Handler) {
  const clients = new PortClients(64 * 1024, (request, response) => {
    response.on('error', () => {})
    handler(request, response)
  })
  const wire = new PortWire(portTo(clients), new URL('http://gateway.example:9100'))
  t.teardown(() => wire.close())
  t.teardown(() => clients.close(0))
  const put = (length: number, idleMs = IDLE_MS) => {
    const headers = { 'content-length': length }
    const made = new PutInParts(wire.begin({ method: 'PUT', path: '/x', headers }), idleMs)
    // A test that looks elsewhere does not wait for it.
    made.answer.catch(() => {})
    return made
  }
  return { clients, wire, put }
}

/** A gateway that reads each body as slowly as `pause` says, and what it has seen. */
function reading(pause: () => Promise<void> | void = () => {}, idleMs = IDLE_MS) {
  const bodies: Buffer[] = []
  const failures: unknown[] = []
  const memories = new Set<ArrayBufferLike>()
  const state = { parts: 0, bytes: 0, bodies, failures, memories }
  const handler: Handler = async (request, response) => {
    const chunks: Buffer[] = []
    const sink: BodySink = {
      write(chunk, used) {
        state.parts++
        state.bytes += chunk.length
        chunks.push(Buffer.from(chunk))
        memories.add(chunk.buffer)
        chunk.fill(0)
        used?.()
        return pause() === undefined
      },
      ready: async () => {
        await pause()
      },
    }
    response.writeContinue()
    try {
      await receive(request, Number(request.headers['content-length']), sink, idleMs)
      bodies.push(Buffer.concat(chunks))
      response.writeHead(200, [])
      response.end()
    } catch (error) {
      failures.push(error)
      response.destroy()
    }
  }
  return Object.assign(state, { handler })
}

async function settled(turns = 30): Promise<void> {
  for (let n = 0; n < turns; n++) await turn()
}

async function sendAll(put: PutInParts, body: Buffer, chunkBytes: number): Promise<void> {
  for (let at = 0; at < body.length; at += chunkBytes) {
    const chunk = Buffer.from(body.subarray(at, at + chunkBytes))
    // The memory is that of the caller again once it is released.
    await put.write(chunk, () => chunk.fill(0))
  }
  put.end()
}

function failureOf(work: Promise<unknown>): Promise<unknown> {
  return work.then(
    () => undefined,
    (error: unknown) => error,
  )
}

t.test('bodies of all sizes arrive as they were sent', async (t) => {
  const gateway = reading()
  const { put, wire } = serve(t, gateway.handler)
  const sizes = [0, 1, CHUNK, PART_BYTES - 1, PART_BYTES, PART_BYTES + 1, 3 * MIB + 7]
  for (const size of sizes) {
    for (const chunkBytes of [CHUNK, CHUNK - 1, 3 * PART_BYTES + 5, ...(size < CHUNK ? [1] : [777])]) {
      const body = randomBytes(size)
      const one = put(size)
      t.equal(await one.goAhead(IDLE_MS), undefined)
      await sendAll(one, body, chunkBytes)
      t.match(await one.answered(IDLE_MS), { status: 200, early: undefined })
      t.ok(gateway.bodies.pop()?.equals(body), `${size} bytes in chunks of ${chunkBytes}`)
    }
  }
  t.match(wire.usage, { busy: 0 })
})

t.test('a body may be sent before the gateway asks for it, and its last bytes with its end', async (t) => {
  const gateway = reading()
  const { put } = serve(t, gateway.handler)
  const body = randomBytes(PART_BYTES + 3 * CHUNK + 9)
  const one = put(body.length)
  await one.write(body.subarray(0, PART_BYTES + CHUNK))
  one.end(body.subarray(PART_BYTES + CHUNK))
  t.equal((await one.answered(IDLE_MS)).status, 200)
  t.ok(gateway.bodies[0]?.equals(body))
})

t.test('few bytes are not kept back until more come', async (t) => {
  const gateway = reading()
  const { put } = serve(t, gateway.handler)
  const one = put(2)
  await one.goAhead(IDLE_MS)
  await one.write(Buffer.from('a'))
  while (gateway.bytes === 0) await turn()
  one.end(Buffer.from('b'))
  await one.answered(IDLE_MS)
  t.equal(gateway.bodies[0]?.toString(), 'ab')
})

t.test('memory goes back and forth', async (t) => {
  const gateway = reading()
  const { put } = serve(t, gateway.handler)
  const parts = 100
  const one = put(parts * PART_BYTES)
  await one.goAhead(IDLE_MS)
  const made = Buffer.allocUnsafeSlow
  let allocated = 0
  Buffer.allocUnsafeSlow = (bytes) => {
    allocated++
    return made(bytes)
  }
  t.teardown(() => {
    Buffer.allocUnsafeSlow = made
  })
  await sendAll(one, randomBytes(parts * PART_BYTES), CHUNK)
  await one.answered(IDLE_MS)
  Buffer.allocUnsafeSlow = made
  t.ok(gateway.parts >= parts)
  t.ok(allocated <= 2 * ((2 * MIB) / PART_BYTES) + 2, `memory was allocated ${allocated} times for ${parts} parts`)
})

t.test('a slow gateway holds the sender back', async (t) => {
  let open = () => {}
  let held = true
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  const gateway = reading(() => (held ? opened : undefined))
  const { put } = serve(t, gateway.handler)
  const one = put(16 * MIB)
  await one.goAhead(IDLE_MS)
  const body = randomBytes(16 * MIB)
  let sent = 0
  const sending = (async () => {
    for (let at = 0; at < body.length; at += CHUNK) {
      await one.write(Buffer.from(body.subarray(at, at + CHUNK)))
      sent += CHUNK
    }
    one.end()
  })()
  await settled(200)
  t.ok(sent <= 2 * MIB + 2 * PART_BYTES, `${sent} bytes have left`)
  held = false
  open()
  await sending
  t.equal((await one.answered(IDLE_MS)).status, 200)
  t.ok(gateway.bodies[0]?.equals(body))
})

t.test('many uploads to a slow gateway share what may be under way', async (t) => {
  const gateway = reading(() => new Promise<void>(() => {}))
  const { put } = serve(t, gateway.handler)
  const uploads = 100
  let sent = 0
  const puts = Array.from({ length: uploads }, () => put(8 * MIB))
  for (const one of puts) {
    await one.goAhead(IDLE_MS)
    void (async () => {
      for (let n = 0; n < 100; n++) {
        sent += CHUNK
        await one.write(Buffer.alloc(CHUNK))
      }
    })().catch(() => {})
  }
  await settled(200)
  const most = 32 * MIB + uploads * (FIRST_WINDOW_BYTES + 2 * PART_BYTES)
  t.ok(sent <= most, `${sent} bytes have left`)
  for (const one of puts) one.destroy()
  await settled()
  const next = put(8 * MIB)
  await next.goAhead(IDLE_MS)
  let free = 0
  void (async () => {
    for (; free < 2 * MIB; free += CHUNK) await next.write(Buffer.alloc(CHUNK))
  })().catch(() => {})
  await settled(200)
  t.ok(free > MIB, 'what they held is free again')
  next.destroy()
})

t.test('a gateway that takes nothing has an end', async (t) => {
  const gateway = reading(() => new Promise<void>(() => {}))
  const { put } = serve(t, gateway.handler)
  const one = put(16 * MIB, 1)
  await one.goAhead(IDLE_MS)
  const sending = sendAll(one, Buffer.alloc(16 * MIB), CHUNK)
  await t.rejects(sending, { code: 'ETIMEDOUT' })
  await t.rejects(one.answer, { code: 'ETIMEDOUT' })
})

t.test('a client that sends nothing has an end', async (t) => {
  const gateway = reading(undefined, 1)
  const { put } = serve(t, gateway.handler)
  const one = put(MIB)
  await one.goAhead(IDLE_MS)
  await t.rejects(one.answer, { code: 'ECONNRESET' })
  t.match(gateway.failures, [{ kind: 'Stalled' }])
})

t.test('a client that leaves at any point stores nothing', async (t) => {
  const size = 2 * PART_BYTES + 3
  for (const point of ['at once', 'before the body', 'in the middle', 'before the end', 'by its time limit']) {
    const gateway = reading()
    const seen: PortRequest[] = []
    const { put, wire } = serve(t, (request, response) => {
      seen.push(request)
      return gateway.handler(request, response)
    })
    const one = put(size)
    if (point !== 'at once') await one.goAhead(IDLE_MS)
    if (point === 'in the middle') await one.write(Buffer.alloc(PART_BYTES))
    if (point === 'before the end') await one.write(Buffer.alloc(size))
    if (point === 'by its time limit') await t.rejects(one.answered(1), { code: 'ETIMEDOUT' })
    else one.destroy()
    await t.rejects(one.answer)
    await t.rejects(Promise.resolve(one.write(Buffer.alloc(1))), point)
    while (gateway.failures.length === 0) await turn()
    t.match(gateway.failures, [{ kind: 'IncompleteBody' }], point)
    t.equal(gateway.bodies.length, 0)
    t.match(seen, [{ complete: false, destroyed: true, socket: { destroyed: true } }])
    t.match(wire.usage, { busy: 0 })
  }
})

t.test('a body of another length than was stated is not taken', async (t) => {
  const gateway = reading()
  const { put } = serve(t, gateway.handler)
  for (const [stated, sent] of [
    [MIB, MIB - 1],
    [MIB, MIB + 1],
    [MIB, 0],
  ] as const) {
    const one = put(stated)
    await one.goAhead(IDLE_MS)
    await sendAll(one, Buffer.alloc(sent), CHUNK)
    await t.rejects(one.answer, { code: 'ECONNRESET' })
    t.match(gateway.failures.pop(), { kind: 'IncompleteBody' }, `${sent} of ${stated} bytes`)
  }
  t.equal(gateway.bodies.length, 0)
})

t.test('a refusal before the body ends the wait for it', async (t) => {
  const { put } = serve(t, (_, response) => {
    response.writeHead(403, ['X-Why', 'no'])
    response.end(Buffer.from('refused'))
  })
  const one = put(MIB)
  t.match(await one.goAhead(IDLE_MS), { status: 403, headers: { 'x-why': 'no' }, text: 'refused', early: true })
  t.ok((await failureOf(Promise.resolve(one.write(Buffer.alloc(1))))) instanceof AnsweredEarly)
})

t.test('a refusal in the middle stops the sender', async (t) => {
  for (const status of [507, 200]) {
    let answer = () => {}
    const { put, wire } = serve(t, (_, response) => {
      response.writeContinue()
      answer = () => {
        response.writeHead(status, [])
        response.end(Buffer.from('full'))
      }
    })
    const one = put(64 * MIB)
    await one.goAhead(IDLE_MS)
    const sending = failureOf(sendAll(one, Buffer.alloc(64 * MIB), CHUNK))
    await settled()
    answer()
    t.ok((await sending) instanceof AnsweredEarly)
    t.match(await one.answer, { status, text: 'full', early: true }, 'and its answer counts, as one to a part')
    t.match(wire.usage, { busy: 0 })
  }
})

t.test('an answer before the end is one to a part of the body, though all bytes have left', async (t) => {
  const { put } = serve(t, (_, response) => {
    response.writeContinue()
    response.writeHead(200, [])
    response.end()
  })
  const one = put(CHUNK)
  await t.resolves(one.goAhead(IDLE_MS))
  t.match(await one.answer, { status: 200, early: true })
})

t.test('a stop cuts uploads that do not end, and lets others end', async (t) => {
  const gateway = reading()
  const { put, clients } = serve(t, gateway.handler)
  const [ending, staying] = [put(MIB), put(MIB)]
  await Promise.all([ending.goAhead(IDLE_MS), staying.goAhead(IDLE_MS)])
  await staying.write(Buffer.alloc(PART_BYTES))
  const closed = clients.close(100)
  await sendAll(ending, Buffer.alloc(MIB), CHUNK)
  t.equal((await ending.answered(IDLE_MS)).status, 200)
  const lost = t.rejects(staying.answer, { code: 'ECONNRESET' })
  await closed
  await lost
  await settled()
  t.match(gateway.failures, [{ kind: 'IncompleteBody' }])
  await t.rejects(put(MIB).goAhead(IDLE_MS), { code: 'ECONNRESET' }, 'and nothing is sent after it')
})

t.test('a client that closes cuts its uploads', async (t) => {
  const gateway = reading()
  const { put, wire } = serve(t, gateway.handler)
  const one = put(MIB)
  await one.goAhead(IDLE_MS)
  await one.write(Buffer.alloc(PART_BYTES))
  wire.close()
  await t.rejects(one.answer, { code: 'ECONNRESET' })
  while (gateway.failures.length === 0) await turn()
  t.match(gateway.failures, [{ kind: 'IncompleteBody' }])
})
