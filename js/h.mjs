// What JSX becomes: shorter in the bundles than the automatic runtime's calls.
export { Fragment, h } from "preact";
