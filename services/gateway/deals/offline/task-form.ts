import { HttpError } from '../../../http/errors.js'
import type { TaskTerms } from '../../../platform/tasks/task.js'
import { type Member, readTerms, spellings } from '../../../platform/tasks/terms.js'
import { GatewayError } from '../../errors.js'

/** The fields of the task that the platform gets, by the first spelling of their names. */
export type TaskForm = Readonly<Record<string, string>>

/** Number by which platforms know tasks of gateways. */
const SOURCE_ID = '3'

/** Members that the client cannot choose: the gateway does. */
const OWN: readonly Member[] = ['Uuid', 'SourceId']

/**
 * Makes the form of a task of what a client asks for, complete and valid. Throws GatewayError InvalidBody, whose
 * message says what to send.
 * @param get the text of a member in any case; '' when it is absent
 */
export function readForm(get: (name: string) => string): TaskForm {
  const form: Record<string, string> = { source_id: SOURCE_ID }
  for (const [member, names] of Object.entries(spellings)) {
    if (OWN.includes(member as Member)) continue
    const texts = new Set(names.map((name) => get(name).trim()).filter((text) => text !== ''))
    const [text, another] = texts
    if (another !== undefined) {
      throw new GatewayError('InvalidBody', { value: `${names.join(' and ')} contradict each other.` })
    }
    if (text !== undefined) form[names[0]] = text
  }
  // The gateway proposes deals of the same duration.
  return { ...form, duration: String(termsOf(form).duration) }
}

/** Throws GatewayError InvalidBody. */
export function termsOf(form: TaskForm): TaskTerms {
  try {
    return readTerms(form)
  } catch (error) {
    if (!(error instanceof HttpError)) throw error
    throw new GatewayError('InvalidBody', { value: error.message }, error)
  }
}
