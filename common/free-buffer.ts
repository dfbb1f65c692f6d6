import { MessageChannel, type MessagePort } from 'node:worker_threads'

/** Node 20 does not have `transfer`: https://tc39.es/ecma262/#sec-arraybuffer.prototype.transfer */
type Memory = ArrayBufferLike & { transfer?(length: number): ArrayBuffer }

const nowhere = closedPort()

/**
 * Frees the memory of a buffer now; the buffer is empty then. Left to the garbage collector, each 64 MiB of such memory
 * cause a collection of the whole heap, which costs more than to encrypt them. Leaves a buffer that shares its memory.
 */
export function freeBuffer({ buffer, length }: Buffer): void {
  const memory: Memory = buffer
  if (memory.byteLength !== length || !(memory instanceof ArrayBuffer)) return
  if (memory.transfer) memory.transfer(0)
  // A message to a closed port takes the memory along: https://html.spec.whatwg.org/#message-port-post-message-steps
  else nowhere.postMessage(undefined, [memory])
}

function closedPort(): MessagePort {
  const { port1, port2 } = new MessageChannel()
  port1.close()
  port2.close()
  return port1
}
