/** Words that clients of a deployment use in names of the interface. Lower-case letters and digits. */
export interface Words {
  /** In place of `storage_coin` and `storagecoin`. */
  readonly coin: string
  /** In place of `stable`, of the address of the stable coin. */
  readonly stable: string
  /** In place of `wallet`, in the path of the sign-in. */
  readonly wallet: string
}

/** The three words of an option, separated by commas, in the order of `Words`. */
export function readWords(text: string): Words {
  const [coin = '', stable = '', wallet = ''] = text.split(',')
  return { coin, stable, wallet }
}

/** The routes, and those whose paths contain other words once more by these. */
export function withRoutesInWords<R extends { readonly path: string }>(
  routes: readonly R[],
  words: Words | undefined,
): readonly R[] {
  if (words === undefined) return routes
  return withRenamed(
    routes.map((route) => [route.path, route] as const),
    (path) => path.replace('/storagecoin', `/${words.coin}`).replace('_by_wallet_', `_by_${words.wallet}_`),
  ).map(([path, route]) => ({ ...route, path }))
}

/** The members, and those whose names contain other words once more by these. Names in upper case stay so. */
export function withMembersInWords(
  members: Readonly<Record<string, unknown>>,
  words: Words | undefined,
): Readonly<Record<string, unknown>> {
  if (words === undefined) return members
  const rename = (name: string): string =>
    name.replace(/^storage_coin_/, `${words.coin}_`).replace(/^stable_address$/, `${words.stable}_address`)
  const renamed = withRenamed(Object.entries(members), (name) =>
    name === name.toUpperCase() ? rename(name.toLowerCase()).toUpperCase() : rename(name),
  )
  return Object.fromEntries(renamed)
}

function withRenamed<T>(
  named: readonly (readonly [string, T])[],
  rename: (name: string) => string,
): (readonly [string, T])[] {
  return named.flatMap(([name, value]) => {
    const other = rename(name)
    return other === name
      ? [[name, value]]
      : [
          [name, value],
          [other, value],
        ]
  })
}
