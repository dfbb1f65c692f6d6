/** A path of the interface: `apiPath('billing')`. */
export function apiPath(...segments: readonly string[]): readonly string[] {
  return ['api', 'v1', ...segments]
}
