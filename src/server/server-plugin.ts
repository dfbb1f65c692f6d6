import { z } from 'zod'
import { S3Error } from '../../common/errors/s3-error.js'
import type { Plugin } from '../api/plugin.js'
import { withChanges } from '../plugins/calls/call.js'
import { defineCall } from '../plugins/calls/define-call.js'
import { getHealth } from '../s3/health.js'
import { type Changes, listChanges } from './manage/changes.js'
import { listOptions, type ShownOption } from './manage/list-options.js'
import { requireLastingKey } from './manage/operators.js'

/** What a reload of the configuration has done. */
export interface Reloaded {
  /** Names of options whose new values are in use. */
  readonly changed: readonly string[]
  /** Names of options whose new values are used after a restart. */
  readonly needRestart: readonly string[]
}

/**
 * Reads the configuration again. Rejects, without any change, for one that cannot be used.
 * @param requestId of the request that asks for it, for the log
 */
export type Reload = (requestId: string) => Promise<Reloaded>

interface ServerPluginDeps {
  readonly reload: Reload | undefined
  readonly changes: () => Changes
  readonly options?: (() => readonly ShownOption[]) | undefined
}

/** The calls by which an operator manages the server. */
export function serverPlugin({ reload, changes, options }: ServerPluginDeps): Plugin {
  return Object.freeze({
    name: 'server',
    operations: [getHealth, reloadCall(reload), listChanges(changes), listOptions(options)],
  })
}

function reloadCall(reload: Reload | undefined) {
  return defineCall({
    name: 'Reload',
    source: 'docs/running.md#changing-the-configuration',
    summary: 'Reads the config file again, with all files that it names: all of it, or nothing.',
    access: 'signed',
    on: { method: 'POST', resource: 'service', path: '/-/reload' },
    result: z.object({
      Changed: z.array(z.string()).meta({ element: 'Option' }).describe('Options whose new values are in use.'),
      NeedRestart: z
        .array(z.string())
        .meta({ element: 'Option' })
        .describe('Options that have changed, too, and whose new values are used after a restart.'),
    }),
    async answer({ request }, { caller, log }) {
      requireLastingKey(caller)
      if (!reload) {
        throw new S3Error('NotImplemented', { message: 'The program that contains this server has no reload.' })
      }
      try {
        const { changed, needRestart } = await reload(request.id)
        return withChanges({ Changed: [...changed], NeedRestart: [...needRestart] }, changed)
      } catch (cause) {
        log.debug({ err: cause }, 'a reload was refused')
        throw new S3Error('InvalidRequest', {
          message:
            'The new configuration cannot be used, and nothing has changed: the log of the server has the reason.',
        })
      }
    },
  })
}
