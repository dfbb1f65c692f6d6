import { basename } from 'node:path'
import * as sqlite from '@photostructure/sqlite'

// Takes the place of @photostructure/sqlite where `statement-hooks.ts` is registered, and keeps what is asked of
// databases.

/** One statement that was run, with the name of the file of its database. */
interface Ran {
  readonly file: string
  readonly sql: string
}

/** All statements of this process in their order. */
export const ran: Ran[] = []

const RUNS: readonly (string | symbol)[] = ['get', 'all', 'run', 'iterate']

/** An object whose members are those of `target`, with some in their place. */
function over<T extends object>(target: T, more: (name: string | symbol) => unknown): T {
  return new Proxy(target, {
    get(_, name) {
      const own = more(name)
      if (own !== undefined) return own
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}

export class DatabaseSync extends sqlite.DatabaseSync {
  constructor(...given: ConstructorParameters<typeof sqlite.DatabaseSync>) {
    super(...given)
    const file = basename(String(given[0]))
    const prepare = (sql: string) => {
      const statement = super.prepare(sql)
      return over(statement, (name) => {
        if (!RUNS.includes(name)) return undefined
        const run = Reflect.get(statement, name, statement) as (...values: unknown[]) => unknown
        return (...values: unknown[]) => {
          ran.push({ file, sql })
          return run.apply(statement, values)
        }
      })
    }
    const exec = (sql: string) => {
      ran.push({ file, sql })
      super.exec(sql)
    }
    // biome-ignore lint/correctness/noConstructorReturn: the methods of this class cannot be replaced
    return over(this as DatabaseSync, (name) => (name === 'prepare' ? prepare : name === 'exec' ? exec : undefined))
  }
}

export const { backup } = sqlite
