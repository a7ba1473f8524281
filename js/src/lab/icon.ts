import { LabIcon } from "@jupyterlab/ui-components";

const CASSETTE = `<svg xmlns="http://www.w3.org/2000/svg" width="16" height="16" viewBox="0 0 16 16">
<path class="jp-icon3" fill="#616161" fill-rule="evenodd" d="M2.5 3h11A1.5 1.5 0 0 1 15 4.500v7a1.500 1.500 0 0 1-1.500 1.500h-11A1.500 1.500 0 0 1 1 11.500v-7A1.500 1.500 0 0 1 2.500 3zm0 1.200a.3.3 0 0 0-.3.3v7c0 .17.13.3.3.3h.9l.9-1.800h7.400l.9 1.800h.9a.3.3 0 0 0 .3-.3v-7a.3.3 0 0 0-.3-.3h-11zM5 5.400a1.900 1.900 0 1 1 0 3.800 1.900 1.900 0 0 1 0-3.800zm6 0a1.900 1.900 0 1 1 0 3.800 1.900 1.900 0 0 1 0-3.800zM5 6.600a.7.7 0 1 0 0 1.400.7.7 0 0 0 0-1.400zm6 0a.7.7 0 1 0 0 1.400.7.7 0 0 0 0-1.400z"/></svg>`;

export const icon = new LabIcon({ name: "tape-jupyter:icon", svgstr: CASSETTE });
