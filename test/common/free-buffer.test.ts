import { createCipheriv } from 'node:crypto'
import t from 'tap'
import { freeBuffer } from '../../src/common/free-buffer.js'

const MiB = 1024 * 1024

t.test('the memory of a buffer is free at once', async (t) => {
  const plain = Buffer.alloc(MiB)
  const before = process.memoryUsage().arrayBuffers
  for (let i = 0; i < 64; i++) {
    const encrypted = createCipheriv('chacha20-poly1305', Buffer.alloc(32), Buffer.alloc(12)).update(plain)
    t.equal(encrypted.length, MiB)
    freeBuffer(encrypted)
    t.equal(encrypted.length, 0)
  }
  t.ok(process.memoryUsage().arrayBuffers - before < 2 * MiB)
})

t.test('a buffer that is a part of another keeps its bytes, and so does the other', async (t) => {
  const whole = Buffer.from('dealgate '.repeat(100))
  for (const part of [Buffer.from('few'), whole.subarray(9), whole.subarray(0, 9)]) {
    const text = part.toString()
    freeBuffer(part)
    t.equal(part.toString(), text)
  }
  t.equal(whole.length, 900)
})
