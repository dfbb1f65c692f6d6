import { Failure } from '../failure.js'
import { postForm } from './http.js'

/** Signs in at a task platform. Resolves with the JWT. Throws Failure with the reason of the platform. */
export async function signIn(platform: string, email: string, password: string): Promise<string> {
  const { status, text } = await postForm('the task platform', `${platform}/auth/login`, { email, password })
  const answer = objectOf(text)
  const token = answer?.auth_token
  if (status === 200 && typeof token === 'string' && token !== '') return token
  const reason =
    typeof answer?.message === 'string' ? answer.message.slice(0, 300) : `It answers with status ${status}.`
  throw new Failure(`The task platform at ${platform} refuses the sign-in: ${reason}`)
}

function objectOf(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? { ...value } : undefined
  } catch {
    return undefined
  }
}
