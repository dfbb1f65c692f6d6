import { readBounded } from '../../common/http/bounded-text.js'
import { Failure } from '../failure.js'

const PATIENCE_MS = 30_000
const MAX_BYTES = 1024 * 1024

export interface Received {
  readonly status: number
  readonly text: string
}

/**
 * Sends a form and receives a small answer. Follows no redirect, because the form has secrets.
 * @param what names the server in messages: `the task platform`
 * @throws Failure when there is no answer
 */
export async function postForm(what: string, url: string, form: Readonly<Record<string, string>>): Promise<Received> {
  try {
    const response = await fetch(url, {
      method: 'POST',
      body: new URLSearchParams(form),
      redirect: 'manual',
      signal: AbortSignal.timeout(PATIENCE_MS),
    })
    return { status: response.status, text: await readBounded(response, MAX_BYTES) }
  } catch (error) {
    const { cause } = error as Error
    const reason = cause instanceof Error ? cause.message || String((cause as NodeJS.ErrnoException).code) : ''
    throw new Failure(`Cannot reach ${what} at ${url}: ${reason || (error as Error).message}`, { cause: error })
  }
}
