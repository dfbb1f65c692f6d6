import { z } from 'zod'
import type { Identity } from '../caller.js'
import { identitySchema, type PolicyProblem, placeOf, policyProblems } from './identity-schema.js'

/** Lists every problem of a credentials file with its position. Never contains a secret. */
export class CredentialsError extends Error {
  override readonly name = 'CredentialsError'

  constructor(readonly problems: readonly string[]) {
    super(problems.join('; '))
  }
}

const listSchema = z.array(identitySchema, { error: 'must be a list of key pairs' })

/**
 * Parses the JSON of a credentials file. Throws CredentialsError.
 * @param policyProblem checks the policies of identities
 */
export function parseCredentials(text: string, policyProblem: PolicyProblem = () => undefined): readonly Identity[] {
  const result = listSchema.safeParse(parseJson(text))
  if (!result.success) {
    throw new CredentialsError(result.error.issues.map(({ path, message }) => `${placeOf(path)} ${message}`.trim()))
  }
  const problems = [
    ...repeats(result.data),
    ...result.data.flatMap((identity, i) =>
      policyProblems(identity, policyProblem).map((problem) => `[${i}]${problem}`),
    ),
  ]
  if (problems.length > 0) throw new CredentialsError(problems)
  return result.data.map((identity) => Object.freeze(identity))
}

/** Formats the JSON that parseCredentials reads. */
export function formatCredentials(identities: readonly Identity[]): string {
  return `${JSON.stringify(identities, null, 2)}\n`
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    // The message may quote the text and thus a secret, so only its position is used.
    const at = /at position (\d+)/.exec((error as Error).message)?.[1]
    throw new CredentialsError([at === undefined ? 'is not JSON' : `is not JSON: line ${lineOf(text, Number(at))}`])
  }
}

function lineOf(text: string, position: number): string {
  const before = text.slice(0, position).split('\n')
  return `${before.length}, column ${(before.at(-1)?.length ?? 0) + 1}`
}

function repeats(identities: readonly Identity[]): string[] {
  const places = new Map<string, number>()
  return identities.flatMap(({ accessKeyId }, i) => {
    const first = places.get(accessKeyId)
    if (first === undefined) {
      places.set(accessKeyId, i)
      return []
    }
    return [`[${i}].accessKeyId duplicates that of [${first}]`]
  })
}
