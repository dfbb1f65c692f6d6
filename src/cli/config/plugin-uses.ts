import { z } from 'zod'
import type { PluginUse } from '../../plugins/loading/load-plugins.js'
import { type Kind, list } from './kinds.js'

const accepts = 'a name or path, or none'
const error = 'must be names or paths of plugins, or none'
const entry = () =>
  z.strictObject(
    {
      use: z.string({ error }).min(1, error),
      options: z.record(z.string(), z.unknown(), { error: '"options" of a plugin must be an object' }).optional(),
    },
    {
      error: (issue) =>
        issue.code === 'unrecognized_keys' ? 'has entries with other members than "use" and "options"' : error,
    },
  )
const use: Kind<PluginUse> = {
  placeholder: 'name|path',
  accepts,
  schema: () =>
    z
      .unknown()
      .transform((value) => (typeof value === 'string' ? { use: value } : value))
      .pipe(entry())
      .transform((read) => ({ ...read, from: '.' })),
}

/** Plugins to run, by name or with options; a single `none` is the empty list. */
export const pluginUses: Kind<readonly PluginUse[]> = {
  ...list(use),
  schema: () =>
    list(use)
      .schema()
      .transform((uses) => (uses.length === 1 && uses[0]?.use === 'none' ? [] : uses)),
  locate: (uses, folder) => uses.map((one) => ({ ...one, from: folder })),
}
