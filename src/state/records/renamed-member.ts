import type { Records } from '../../api/state.js'

/**
 * The records with one member under another name than the store has it, at any depth: releases before and after a
 * change of the name read each other's records. For plain JSON without names that a client chooses.
 */
export function renamedMember<T>(records: Records<T>, name: string, stored: string): Records<T> {
  const read = (value: T | undefined) => renamed(value, stored, name)
  const write = (value: T) => renamed(value, name, stored)
  return {
    get: async (key) => read(await records.get(key)),
    getMany: async (keys) => (await records.getMany(keys)).map(read),
    set: (key, value) => records.set(key, write(value)),
    async change(key, to) {
      const present = await records.change(key, async (before) => {
        const known = read(before)
        const next = await to(known)
        return next === known ? before : next === undefined ? next : write(next)
      })
      return read(present)
    },
    delete: (key) => records.delete(key),
    async *entries() {
      for await (const [key, value] of records.entries()) yield [key, renamed(value, stored, name)]
    },
  }
}

function renamed<V>(value: V, from: string, to: string): V {
  if (Array.isArray(value)) return value.map((one) => renamed(one, from, to)) as V
  if (typeof value !== 'object' || value === null) return value
  const members = Object.entries(value).map(([name, member]) => [name === from ? to : name, renamed(member, from, to)])
  return Object.fromEntries(members) as V
}
