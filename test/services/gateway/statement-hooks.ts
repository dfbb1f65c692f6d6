import type { ResolveHook } from 'node:module'

const COUNTED = new URL('./counted-sqlite.js', import.meta.url).href

/** Has every module get `counted-sqlite.ts` in place of SQLite. */
export const resolve: ResolveHook = (specifier, context, next) =>
  specifier === '@photostructure/sqlite' && context.parentURL !== COUNTED
    ? { url: COUNTED, shortCircuit: true }
    : next(specifier, context)
