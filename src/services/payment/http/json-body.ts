import { isDeeper } from '../../../common/json-depth.js'
import { Blocks } from '../../http/blocks.js'
import { receive } from '../../http/receive.js'
import { PaymentError } from '../errors.js'
import type { Exchange } from './exchange.js'
import { Fields } from './fields.js'

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/**
 * Reads a JSON object of texts and numbers, whatever its Content-Type: a known client sends none. Throws PaymentError:
 * `structure` for any other body, `large` and `late` beyond the limits.
 */
export async function readJson(exchange: Exchange): Promise<Fields> {
  const text = decode(await receiveAll(exchange))
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new PaymentError('structure', 'the body is not JSON')
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value) || isDeeper(value, 1)) {
    throw new PaymentError('structure', 'the body must be a JSON object of texts and numbers')
  }
  return new Fields(Object.entries(value).flatMap(([name, one]) => (one === null ? [] : [[name, String(one)]])))
}

async function receiveAll({ context, request, body }: Exchange): Promise<Buffer> {
  const { maxJsonBytes, jsonMs, bodyIdleMs } = context.limits
  const tooLarge = () => new PaymentError('large', `a body may have at most ${maxJsonBytes} bytes`)
  if (Number(request.headers['content-length'] ?? 0) > maxJsonBytes) throw tooLarge()
  const blocks = new Blocks()
  const deadline = performance.now() + jsonMs
  let refusal: PaymentError | undefined
  body.open()
  const write = (chunk: Buffer): boolean => {
    if (blocks.size + chunk.length > maxJsonBytes) refusal = tooLarge()
    else if (performance.now() > deadline) refusal = new PaymentError('late', `the body took over ${jsonMs} ms`)
    else blocks.add(chunk)
    return refusal === undefined
  }
  await receive(request, undefined, { write, ready: () => Promise.reject(refusal) }, bodyIdleMs)
  return Buffer.concat(blocks.all())
}

function decode(body: Buffer): string {
  try {
    return decoder.decode(body)
  } catch {
    throw new PaymentError('structure', 'the body is not UTF-8')
  }
}
