export interface Store {
  readonly placeholder?: never
}
