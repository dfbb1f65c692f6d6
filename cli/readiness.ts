import { parseObject } from '../common/json.js'
import { ANY, ask } from './doctor/gateway-mistakes.js'

/** Longest wait for an answer, ms: the server itself waits as long for what it asks. */
const PATIENCE_MS = 4000

/** Why a server of this machine is not ready; undefined if it is. Never rejects. */
export async function readinessProblem(endpoint: string): Promise<string | undefined> {
  try {
    const { status, body } = await ask(`${endpoint}/-/ready`, { timeoutMs: PATIENCE_MS, tls: ANY })
    return status === 200 ? undefined : (problemIn(body) ?? `/-/ready answers ${status}.`)
  } catch {
    return '/-/ready does not answer in time.'
  }
}

/** What an answer of `/-/ready` or an error document says is wrong. */
export function problemIn(body: string): string | undefined {
  const [, message] = /<Message>([\s\S]*?)<\/Message>/.exec(body) ?? []
  if (message !== undefined) return message
  const { problem, reasons, Message } = parseObject(body) ?? {}
  const texts = [problem, Message, ...(Array.isArray(reasons) ? reasons : [])].filter(
    (text) => typeof text === 'string',
  )
  return texts.length > 0 ? texts.join(' ') : undefined
}
