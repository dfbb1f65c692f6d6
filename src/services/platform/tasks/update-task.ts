import { PlatformError } from '../errors.js'
import { readFields } from '../http/body.js'
import type { Exchange } from '../http/exchange.js'
import { requireUser } from '../sign-in/caller.js'
import type { User } from '../users/users.js'
import { assignTask } from './assign-task.js'
import { findProvider, readFile } from './create-task.js'
import { readableTask } from './show-task.js'
import type { Task } from './task.js'

/**
 * PUT /uuid_tasks/{task_uuid}: the poster of a task without a provider names one, `miner_fid`, and the deals in a CSV:
 * those that it has sent to the provider itself.
 */
export function updateTask(exchange: Exchange): Promise<object> {
  const user = requireUser(exchange)
  ownTask(exchange, user)
  return exchange.context.uploads.run(user.id, () => update(exchange, user))
}

async function update(exchange: Exchange, user: User): Promise<object> {
  const { context } = exchange
  const fields = await readFields(exchange, { files: true })
  const minerId = fields.required('miner_fid')
  const file = readFile(fields)
  if (file === undefined) throw new PlatformError(400, 'file is missing: send the deals of the task in a CSV.')
  const provider = await findProvider(exchange, minerId, 'miner_fid')
  await context.market.mover.catchUp()
  const { task, mailed } = await assignTask(context, { task: ownTask(exchange, user), provider, file })
  const notice = mailed ? ' A notification email has been sent to the storage provider.' : ''
  return { data: { filename: task.fileName, uuid: task.uuid }, message: `Task updated successfully.${notice}` }
}

/** Throws PlatformError 404 for a task that the caller may not read, and 403 for that of another user. */
function ownTask(exchange: Exchange, { id }: User): Task {
  const task = readableTask(exchange, exchange.path.task_uuid ?? '')
  if (task.user !== id) throw new PlatformError(403, 'Only the poster of the task may name its storage provider.')
  return task
}
