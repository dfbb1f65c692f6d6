import type { Provider } from '../../network/network.js'
import { PlatformError } from '../errors.js'
import { readFields } from '../http/body.js'
import type { Exchange } from '../http/exchange.js'
import type { Fields, UploadedFile } from '../http/fields.js'
import { knownProviders } from '../miners/known-providers.js'
import { requireUser } from '../sign-in/caller.js'
import type { User } from '../users/users.js'
import { postTask } from './post-task.js'
import { readTerms, readUuid } from './terms/read-terms.js'

const MAX_FILE_NAME = 255

/** POST /tasks: posts a task with the deals of a CSV. */
export function createTask(exchange: Exchange): Promise<object> {
  const user = requireUser(exchange)
  return exchange.context.uploads.run(user.id, () => create(exchange, user))
}

async function create(exchange: Exchange, user: User): Promise<object> {
  const fields = await readFields(exchange, { files: true })
  const terms = readTerms(fields)
  const file = readFile(fields)
  if (file === undefined && !terms.isPublic) {
    throw new PlatformError(400, 'file is missing: a private task needs a CSV with its deals.')
  }
  const provider = terms.minerId === null ? undefined : await findProvider(exchange, terms.minerId)
  const request = { user: user.id, terms, uuid: readUuid(fields), file, provider }
  const { task, mailed } = await postTask(exchange.context, request)
  const notice = mailed ? ' A notification email has been sent to the storage provider.' : ''
  return { data: { filename: task.fileName, uuid: task.uuid }, message: `Task created successfully.${notice}` }
}

/** The CSV of a form, if it has one. Throws PlatformError 400 for other files. */
export function readFile(fields: Fields): UploadedFile | undefined {
  const { files } = fields
  if (fields.has('file'))
    throw new PlatformError(400, 'file is a text: send the CSV as a file of the form, with a name.')
  const other = [...files.keys()].find((name) => name !== 'file')
  if (other !== undefined) throw new PlatformError(400, `The form has a file ${other}: send the CSV as file.`)
  const file = files.get('file')
  if (file === undefined) return undefined
  if (/\p{Cc}/u.test(file.name) || file.name.length > MAX_FILE_NAME) {
    throw new PlatformError(
      400,
      `The name of the file has control characters or more than ${MAX_FILE_NAME} characters.`,
    )
  }
  return file
}

/** Throws PlatformError 400, which names the field. */
export async function findProvider({ context }: Exchange, minerId: string, field = 'miner_id'): Promise<Provider> {
  const provider = (await knownProviders(context)).find((one) => one.minerId === minerId)
  if (provider === undefined) throw new PlatformError(400, `${field}: there is no storage provider ${minerId}.`)
  if (!provider.offlineDealAvailable) {
    throw new PlatformError(400, `${field}: the storage provider ${minerId} takes no offline deals.`)
  }
  return provider
}
