import type { Provider } from '../../network/network.js'
import { formatFil } from '../../network/units/fil.js'
import type { Task } from '../tasks/task.js'
import type { Mail } from './mail-table.js'

const ADDRESS = /^[^\s@<>,;:"()[\]\\]{1,64}@[^\s@<>,;:"()[\]\\]{1,190}$/

/**
 * The mail that tells a provider of a task that is its own from now on. Undefined when the provider's contact
 * information is not a mail address.
 */
export function assignmentMail(task: Task, deals: number, { minerId, contactInfo }: Provider): Mail | undefined {
  if (!ADDRESS.test(contactInfo)) return undefined
  const price = task.maxPrice === null ? 'not limited' : `at most ${formatFil(task.maxPrice)} fil per GiB and epoch`
  return {
    recipient: contactInfo,
    subject: `Task ${task.name} is assigned to ${minerId}`,
    text: [
      `The task ${task.name} is assigned to your storage provider ${minerId}.`,
      '',
      `Task: ${task.uuid}`,
      `Type: ${task.type ?? 'regular'}`,
      `Deals: ${deals}`,
      `Duration: ${task.duration} epochs`,
      `Price: ${price}`,
      ...(task.expireDays === null ? [] : [`Expires: ${task.expireDays} days after it was posted`]),
      '',
      `GET /offline_deals/${minerId}?deal_status=Created lists the deals to fetch.`,
      '',
    ].join('\n'),
  }
}
