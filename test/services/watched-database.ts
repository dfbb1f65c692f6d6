import type { Database } from '../../src/services/database.js'

/**
 * The same database, with a call of `look` after each statement: those of one `exec` run one after the other, as SQLite
 * itself runs them. No literal and no comment of them may contain a semicolon.
 */
export function watchedDatabase(db: Database, look: () => void): Database {
  const after = <T>(result: T): T => {
    look()
    return result
  }
  const statementOf = (statement: ReturnType<Database['prepare']>) =>
    new Proxy(statement, {
      get(target, name) {
        const value: unknown = Reflect.get(target, name, target)
        if (typeof value !== 'function') return value
        return (...args: unknown[]) => after(value.apply(target, args))
      },
    })
  return new Proxy(db, {
    get(target, name) {
      if (name === 'exec') {
        return (text: string) => {
          for (const statement of text.split(';')) if (statement.trim() !== '') after(target.exec(statement))
        }
      }
      if (name === 'prepare') return (text: string) => statementOf(target.prepare(text))
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}
