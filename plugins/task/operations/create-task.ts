import { defineCall } from 'dealgate'
import { fileSizesOf } from '../create/csv.js'
import { BEARER_PURPOSE, CREATE_TASK, createdTask, type TaskInput } from '../create/input.js'
import { checkManifest } from '../create/manifest.js'
import { newTask, taskAliases, termsOf } from '../create/terms.js'
import { acting, actorOf } from '../login/acting.js'
import type { TaskParts } from '../parts.js'
import { SOURCE } from './sources.js'

export function createTask(parts: TaskParts) {
  return defineCall({
    name: 'CreateTask',
    source: SOURCE,
    summary: 'Creates a task: storage providers make deals for the files of a CSV.',
    access: 'signed',
    on: { method: 'POST', resource: 'service', path: '/-/task/v1/tasks' },
    body: newTask,
    aliases: taskAliases,
    result: createdTask,
    job: CREATE_TASK,
    spends: true,
    async order({ request, body }, context) {
      const terms = termsOf(body)
      const { File: csv, FileName: fileName, ManifestBucket: bucket, ManifestKey: key } = body
      if (csv !== undefined) fileSizesOf(csv)
      const manifest =
        bucket === undefined || key === undefined
          ? undefined
          : { bucket, key, stamp: await checkManifest(context, { bucket, key }) }
      const actor = actorOf(context, request)
      await acting(parts, actor, 'any', async () => undefined)
      const input: TaskInput = {
        terms,
        ...(csv !== undefined && { csv }),
        ...(fileName !== undefined && { fileName }),
        ...(manifest && { manifest }),
        ...(actor.bearer !== undefined && { bearer: await parts.host.sealer.seal(actor.bearer, BEARER_PURPOSE) }),
      }
      return { resource: bucket === undefined ? '/-/task/v1/tasks' : `/${bucket}`, input }
    },
  })
}
